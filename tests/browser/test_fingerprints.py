"""The fingerprint pages in a real browser: from the list to a moved field, at every width and in both themes."""

import pytest
from playwright.sync_api import expect

from tests.browser import looks
from tests.nightly import nightly

pytestmark = pytest.mark.browser


@pytest.fixture
def rotated(stage) -> tuple[int, int]:
    """A run on each of two fingerprints; returns their ids, the older first."""
    by, found = stage.worker(), []
    for dtype in ("float32", "bfloat16"):
        stage.start(repeats=1)
        process = stage.engine(by, dtype=dtype)
        stage.serve(by, process)
        found.append(process.bucket.fingerprint_id)
    return found[0], found[1]


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_every_fingerprint_page_is_quiet_fits_and_has_no_barrier(rotated, watch, theme, width):
    one, other = rotated
    watched = watch(theme=theme, width=width)
    barriers = []
    for address in ("/fingerprints/", f"/fingerprints/{one}/", f"/fingerprints/{one}/diff/{other}/"):
        page = watched.open(address)
        for fold in page.locator("details.fold > summary").all():
            fold.click()
        assert watched.overflow() == 0, address
        watched.check()
        barriers += watched.barriers()
    assert barriers == []


@pytest.mark.nightly
@pytest.mark.parametrize("has_scripts", [True, *nightly([False])])
def test_the_way_from_the_list_to_what_moved(rotated, watch, has_scripts):
    watched = watch(java_script_enabled=has_scripts)
    page = watched.page
    page.goto(watched.base + "/fingerprints/")
    page.get_by_role("button", name="Compare").click()
    row = page.get_by_role("row", name="dtype")
    expect(row.get_by_role("cell").first).to_have_text("float32")
    expect(row.get_by_role("cell").last).to_have_text("bfloat16")
    page.get_by_role("link", name="Swap the sides").click()
    expect(row.get_by_role("cell").first).to_have_text("bfloat16")
    page.locator("summary", has_text="fields are equal").click()
    expect(page.get_by_text("AVX2", exact=True)).to_be_visible()
