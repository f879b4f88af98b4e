"""The release manager's walk: from the board to a decision, with the clicks and the seconds that it takes."""

import re
import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.catalogue import store_default_policies
from runs.models import ReleaseRecord, RunRecord
from tests import build
from tests.browser import looks
from tests.frontend import release_runs
from tests.judged import WORSE

pytestmark = pytest.mark.browser
MANAGER = "release manager"
MAX_SECONDS = 60.0  # of a walk on a machine that does other things; what it took is recorded beside the test


class Walk:
    """Counts the clicks of a person and how long they took."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.n_clicks = 0
        self.began = time.monotonic()

    def click(self, name: str, role: Any = "link") -> None:
        self.page.get_by_role(role, name=name, exact=role == "button").first.click()
        self.n_clicks += 1

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


def waiting() -> tuple[ReleaseRecord, ReleaseRecord]:
    """A no-ship and one that may not be compared, as another stack served its candidate."""
    release_runs.policies()
    of, by = release_runs.suite(), build.process(build.bucket(batch_class="mixed"))
    baseline = release_runs.run(of, by=by, is_shuffled=True)  # in other batches each time, so that equal repeats count
    worse = build.process(build.bucket(batch_class="mixed", weights=WORSE))
    candidate = release_runs.run(of, by=worse, n_failed=10, is_shuffled=True)
    broke = release_runs.release(release_runs.gate(baseline, candidate))
    other = build.process(build.bucket("bfloat16", batch_class="mixed"))
    torn = build.run(of, repeats=5)
    texts = ["blue"] * release_runs.N_CASES
    for repeat in range(1, 6):
        build.decode(torn, repeat, texts, by=[by] * 20 + [other] * (release_runs.N_CASES - 20))
    torn.refresh_from_db()
    return broke, release_runs.release(release_runs.gate(baseline, torn), policy="wide")


def test_a_no_ship_is_read_and_rejected(transactional_db: Any, watch, record_property):
    broke, _ = waiting()
    watched = watch(role=MANAGER)
    page = watched.open("/")
    expect(page.locator(".finding")).to_have_text("One release must not ship. One cannot be compared.")
    walk = Walk(page)
    walk.click(f"release {broke.pk}")
    expect(page.get_by_role("heading", level=1)).to_have_text("No-ship")
    expect(page.get_by_role("link", name="See the 10 cases that broke")).to_be_in_viewport()
    outlined = page.locator(".worst .parts-here")
    expect(outlined).to_have_count(6)
    places = [box["x"] for box in (outlined.nth(at).bounding_box() for at in range(2)) if box]
    assert len(places) == 2
    assert abs(places[0] - places[1]) < 1  # of both answers under each other
    page.keyboard.press("s")
    page.get_by_role("radio", name="Reject").check()
    page.get_by_label("Note").fill("Ten cases broke.")
    walk.n_clicks += 1
    walk.click("Sign", "button")
    expect(page.locator(".hero-standing")).to_contain_text("Rejected by mira")
    record_property("clicks", walk.n_clicks)
    record_property("seconds", round(walk.seconds, 1))
    print(f"no-ship: {walk.n_clicks} clicks, {walk.seconds:.1f} s")
    assert walk.n_clicks <= 3
    assert walk.seconds < MAX_SECONDS
    watched.check()


@pytest.mark.nightly
def test_the_broken_cases_are_as_many_as_the_button_says_and_open_at_the_flip(transactional_db: Any, watch):
    broke, _ = waiting()
    watched = watch(role=MANAGER)
    page = watched.open(f"/releases/{broke.pk}/")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", level=1)).to_contain_text("case-")
    page.goto(f"{watched.base}/releases/{broke.pk}/")
    page.get_by_role("link", name="See the 10 cases that broke").click()
    expect(page.locator("#case-list tbody > tr")).to_have_count(10)
    watched.check()


@pytest.mark.nightly
def test_a_mixed_run_is_told_from_a_verdict_and_run_again(transactional_db: Any, watch, record_property):
    _, torn = waiting()
    watched = watch(role=MANAGER)
    page = watched.open("/")
    row = page.locator("table.waiting tbody tr").filter(has_text=f"release {torn.pk}")
    expect(row).to_contain_text("no number")
    expect(row).to_contain_text(re.compile(r"Backend \S+ answered 33 %. 100.0 without it."))
    walk = Walk(page)
    walk.click(f"release {torn.pk}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not comparable")
    expect(page.locator(".instrument")).to_contain_text("Who served the candidate’s responses")
    walk.click("Run the candidate again")
    expect(page.get_by_role("heading", level=1)).to_contain_text("candidate")
    walk.click("Run it", "button")
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"run {RunRecord.objects.latest('pk').pk}")
    print(f"mixed: {walk.n_clicks} clicks, {walk.seconds:.1f} s")
    record_property("clicks", walk.n_clicks)
    record_property("seconds", round(walk.seconds, 1))
    assert walk.n_clicks <= 3
    assert walk.seconds < MAX_SECONDS
    watched.check()


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_the_board_fits_and_its_rows_are_reached_by_keys(transactional_db: Any, watch, theme, width):
    store_default_policies()
    broke, torn = waiting()
    watched = watch(theme=theme, width=width, role=MANAGER)
    page = watched.open("/")
    assert page.title() == "(2) Board · Evalboard"
    assert watched.overflow() == 0
    assert watched.barriers() == []
    page.keyboard.press("j")
    expect(page.locator(f"#release-{broke.pk}")).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(f"#release-{torn.pk}")).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("No-ship")
    watched.check()


@pytest.mark.nightly
def test_an_open_board_changes_by_itself_and_keeps_the_focus(transactional_db: Any, watch):
    broke, _ = waiting()
    watched = watch(role=MANAGER)
    page = watched.open("/")
    page.keyboard.press("j")
    run = build.run()
    expect(page.locator(".work")).to_contain_text(f"run {run.pk}")
    expect(page.locator(f"#release-{broke.pk}")).to_be_focused()
    watched.check()
