"""The report of two logs opened from a disk: no request, no barrier, no overflow; lists, search and keys."""

import json

import pytest
from playwright.sync_api import expect

from evalboard.cli.main import main
from tests.browser import looks
from tests.browser.conftest import Watched
from tests.recorded import LOGS

pytestmark = pytest.mark.browser


@pytest.fixture
def opened(browser, tmp_path):
    """Opens the report of two logs in a look."""
    contexts = []

    def open_report(*logs, theme="light", width=1280, **options):
        with pytest.raises(SystemExit):
            main(["diff", *map(str, logs), "--html", str(tmp_path / "report.html")])
        contexts.append(browser.new_context(color_scheme=theme, viewport={"width": width, "height": 800}, **options))
        watched = Watched(contexts[-1], tmp_path.as_uri())
        watched.open("/report.html")
        return watched

    yield open_report
    for context in contexts:
        context.close()


@pytest.fixture
def scored(tmp_path):
    """Two logs of 30 samples: 4 broke, 2 were fixed, 3 read otherwise, one of them with a huge answer."""
    rows = [{"case": f"c{at}", "prompt": f"What is {at}?", "answer": "yes", "score": int(at > 5)} for at in range(30)]
    for row in rows[:4]:
        row["score"] = 1
    theirs = [dict(row) for row in rows]
    for at, row in enumerate(theirs[:9]):
        row["answer"] = f"<b>no</b> {'word ' * 20000 if at == 7 else 'owl'}"
        row["score"] = 0 if at < 4 else 1
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, lines in zip(paths, (rows, theirs), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in lines))
    return paths


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_the_file_is_quiet_fits_and_has_no_barrier(opened, theme, width):
    logs = (LOGS / "inspect" / "fp32_baseline.eval", LOGS / "inspect" / "bf16_candidate.eval")
    watched = opened(*logs, theme=theme, width=width)
    expect(watched.page.locator(".log-case.shown .token.flip").first).to_be_visible()
    assert watched.overflow() == 0
    assert watched.barriers() == []
    watched.page.set_viewport_size({"width": 794, "height": 1123})
    watched.page.emulate_media(media="print")
    assert watched.overflow() == 0
    watched.check()


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.DESK)
def test_lists_search_and_keys_lead_through_the_samples(opened, scored, theme, width):
    watched = opened(*scored, theme=theme, width=width)
    page = watched.page
    rows = page.locator(".log-cases tbody tr:visible")
    expect(rows).to_have_count(4)  # what broke is shown first
    page.get_by_text("fixed 2").click()
    expect(rows).to_have_count(2)
    page.get_by_text("all 30").click()
    expect(rows).to_have_count(30)
    page.get_by_label("Find a sample").fill("owl")
    expect(rows).to_have_count(8)
    page.get_by_label("Find a sample").fill("no such")
    expect(page.get_by_text("No sample of this list holds that.")).to_be_visible()
    page.get_by_label("Find a sample").fill("")
    page.get_by_label("Find a sample").blur()
    shown = page.locator(".log-case:visible")
    expect(shown).to_have_count(1)
    first = shown.get_attribute("id")
    page.keyboard.press("n")
    expect(shown).not_to_have_id(first)
    page.keyboard.press("p")
    expect(shown).to_have_id(first)
    rows.nth(8).get_by_role("link").click()
    expect(shown.get_by_role("heading", level=2).first).to_have_text(rows.nth(8).locator("th").inner_text())
    page.get_by_role("button", name="Theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert watched.overflow() == 0
    assert watched.barriers() == []
    watched.check()


@pytest.mark.nightly
def test_without_scripts_every_sample_can_be_read(opened, scored):
    page = opened(*scored, java_script_enabled=False).page
    expect(page.locator(".log-case")).to_have_count(9)
    assert all(case.is_visible() for case in page.locator(".log-case").all())
    page.get_by_text("broken 4").click()
    expect(page.locator(".log-cases tbody tr:visible")).to_have_count(4)
