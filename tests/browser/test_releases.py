"""Releases in a real browser: from the board to a signed release, one page of paper, every theme and width, and axe."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs.models import ReleaseRecord
from runs.release import decide_release
from tests import build
from tests.browser import looks
from tests.frontend import release_runs
from tests.nightly import nightly

pytestmark = pytest.mark.browser
MANAGER = "release manager"
MAX_WORDS = 350
# Words that are seen in the page's main part: neither in closed parts nor for screen readers alone.
N_WORDS = """() => {
  const isSeen = (element) =>
    element.checkVisibility({ visibilityProperty: true }) && !element.closest(".visually-hidden");
  const walk = (node) => node.nodeType === Node.TEXT_NODE
    ? (isSeen(node.parentElement) ? node.textContent : " ")
    : [...node.childNodes].map(walk).join(" ");
  return walk(document.querySelector("main")).split(/\\s+/).filter((word) => /[\\p{L}\\p{N}]/u.test(word)).length;
}"""


def several(n: int = 4) -> ReleaseRecord:
    """A release with so many gates, the last of them advisory."""
    release_runs.policies()
    by = build.process(build.bucket(batch_class="mixed"))  # whose repeats may differ without a warning
    gates = []
    for place in range(n):
        of = release_runs.suite(f"suite-{place}")
        candidate = release_runs.run(of, by=by, unstable=[place])
        tier = "advisory" if place and place == n - 1 else "critical"
        gates.append(release_runs.gate(release_runs.run(of, by=by), candidate, tier))
    return release_runs.release(*gates, labels={"commit": "8f21c0e", "branch": "main"})


def n_pages(page: Page) -> int:
    """How many sheets of A4 it prints to."""
    printed = page.pdf(prefer_css_page_size=True, print_background=True)
    return len(re.findall(rb"/Type\s*/Page[^s]", printed))


@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.DESK)
def test_the_way_from_the_board_to_a_signed_release(transactional_db: Any, watch, theme, width):
    made = release_runs.of_kind("ship")
    watched = watch(theme=theme, width=width, role=MANAGER)
    page = watched.open("/")
    page.get_by_role("link", name=f"release {made.pk}").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ship")
    approve = page.get_by_role("radio", name="Approve")
    expect(approve).to_be_hidden()
    page.locator(".sign-bar > summary").click()
    expect(approve).to_be_in_viewport()
    approve.check()
    page.get_by_label("Note").fill("Read the changed cases; fine.")
    page.get_by_role("button", name="Sign", exact=True).click()
    expect(page.locator(".hero-standing")).to_contain_text("Approved by mira")
    page.goto(watched.base + "/releases/")
    expect(page.locator("table.releases tbody tr")).to_contain_text("approved")
    watched.check()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["not_comparable", *nightly(["ship", "no_ship", "inconclusive", "suite_too_small"])])
def test_a_release_prints_to_one_page_without_what_only_a_screen_can_use(transactional_db: Any, watch, kind):
    made = release_runs.of_kind(kind)
    watched = watch(theme="dark", role=MANAGER)
    page = watched.open(f"/releases/{made.pk}/")
    assert n_pages(page) == 1
    page.emulate_media(media="print")
    for hidden in (".actions", ".sign-bar", "header.bar"):
        assert page.locator(f"{hidden}:visible").count() == 0, hidden
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".facts-list .mono").last).to_be_visible()  # what is folded on a screen is open on paper
    ground = page.locator("body").evaluate("element => getComputedStyle(element).colorScheme")
    assert "dark" not in ground


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["no_ship", *nightly(["ship", "inconclusive", "noisy", "not_comparable", "service"])])
def test_a_release_is_read_in_350_words_and_signed_in_three_clicks_from_the_board(transactional_db: Any, watch, kind):
    made = _service() if kind == "service" else release_runs.of_kind(kind)
    watched = watch(role=MANAGER)
    page = watched.open(f"/releases/{made.pk}/")
    expect(page.locator(".tick")).to_have_count(5)
    assert 100 < page.evaluate(N_WORDS) <= MAX_WORDS
    page.goto(f"{watched.base}/releases/{made.pk}/#sign")  # as "Sign off…" of the board leads: a click
    expect(page.get_by_label("Note")).to_be_in_viewport()
    page.get_by_role("radio", name="Reject").check()
    page.get_by_label("Note").fill("Not this one.")
    page.get_by_role("button", name="Sign", exact=True).click()
    expect(page.locator(".hero-standing", has_text="Rejected by mira")).to_be_visible()
    watched.check()


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_the_evidence_of_a_question_opens_below_them_all_and_one_at_a_time(transactional_db: Any, watch, theme, width):
    made = release_runs.of_kind("inconclusive")
    watched = watch(theme=theme, width=width, role=MANAGER)
    page = watched.open(f"/releases/{made.pk}/")
    for place in (2, 0):
        page.locator(".tick > summary").nth(place).click()
        expect(page.locator(".tick-body:visible")).to_have_count(1)
    expect(page.locator(".tick-body:visible")).to_contain_text("vLLM")
    assert watched.overflow() == 0
    assert watched.barriers() == []
    watched.check()


@pytest.mark.nightly
def test_a_release_of_four_gates_prints_to_one_page_too(transactional_db: Any, watch):
    made = several()
    page = watch(role=MANAGER).open(f"/releases/{made.pk}/")
    assert page.locator("table.gates tbody tr").count() == 4
    assert n_pages(page) == 1


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_every_page_of_releases_is_quiet_fits_and_has_no_barrier(transactional_db: Any, watch, theme, width):
    watched = watch(theme=theme, width=width, role=MANAGER)
    addresses = ["/releases/", "/releases/new/"]
    made = release_runs.of_kind("inconclusive")
    moved = _moved(made)
    addresses += [f"/releases/{made.pk}/", f"/releases/{made.pk}/settle/", f"/releases/{moved.pk}/"]
    addresses += [f"/releases/{moved.pk}/rerun/?side=baseline", f"/releases/new/?candidate={_candidate(made)}"]
    barriers = []
    for address in addresses:
        watched.open(address)
        assert watched.overflow() == 0, address
        watched.check()
        barriers += watched.barriers()
    assert barriers == []


@pytest.mark.nightly
def test_a_release_is_asked_for_and_signed_without_scripts(transactional_db: Any, watch):
    release_runs.policies()
    of, by = release_runs.suite(), build.process()
    baseline, candidate = release_runs.run(of, by=by), release_runs.run(of, by=by)
    page = watch(java_script_enabled=False, role=MANAGER).open(f"/releases/new/?candidate={candidate.pk}")
    page.get_by_label("Baseline").select_option(str(baseline.pk))
    page.get_by_role("button", name="Add another suite").click()
    expect(page.get_by_label("Candidate")).to_have_count(2)
    page.get_by_role("radio", name=re.compile("^wide")).check()
    page.get_by_role("button", name="Judge it").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ship")
    page.locator(".sign-bar > summary").click()
    page.get_by_role("radio", name="Reject").check()
    page.get_by_label("Note").fill("Not today.")
    page.get_by_role("button", name="Sign", exact=True).click()
    expect(page.locator(".hero-standing")).to_contain_text("Rejected by mira")


@pytest.mark.nightly
def test_an_end_date_is_asked_for_only_where_it_is_waived(transactional_db: Any, watch):
    made = release_runs.of_kind("no_ship")
    watched = watch(role=MANAGER)
    page = watched.open(f"/releases/{made.pk}/")
    page.keyboard.press("s")
    until = page.get_by_label("Waived until")
    expect(until).to_be_hidden()
    page.get_by_role("radio", name="Waive").check()
    expect(until).to_be_visible()
    watched.check()


@pytest.mark.nightly
def test_a_page_that_is_open_follows_the_repeats_that_were_asked_for(transactional_db: Any, watch):
    made = release_runs.of_kind("inconclusive")
    watched = watch()
    page = watched.open(f"/releases/{made.pk}/")
    page.get_by_role("link", name="Run 5 more repeats").click()
    page.get_by_role("button", name=re.compile("^Run 300 responses")).click()
    expect(page.locator(".hero-standing")).to_contain_text("at work on runs")
    for run in _runs(made):
        for index in range(6, 11):
            build.decode(run, index, ["blue"] * release_runs.N_CASES, by=build.process())
    decide_release(release_id=made.pk)
    expect(page.get_by_role("heading", level=1)).to_have_text("Ship")
    expect(page.locator(".story")).to_contain_text("Repeats up to 10 a side", use_inner_text=False)
    watched.check()


def _service() -> ReleaseRecord:
    gate = release_runs.of_kind("not_comparable").gates.get()
    return release_runs.release(release_runs.gate(gate.baseline_run, gate.candidate_run), treatment="service")


def _runs(made: ReleaseRecord) -> list[Any]:
    gate = made.gates.get()
    return [gate.baseline_run, gate.candidate_run]


def _candidate(made: ReleaseRecord) -> int:
    return made.gates.get().candidate_run_id


def _moved(beside: ReleaseRecord) -> ReleaseRecord:
    """A release against the same baseline whose candidate another stack served."""
    gate = beside.gates.get()
    other = build.process(build.bucket("bfloat16"))
    candidate = release_runs.run(gate.baseline_run.suite_version, by=other)
    return release_runs.release(release_runs.gate(gate.baseline_run, candidate))
