"""Forced scorings in a real browser: each page fits, says nothing against the rules, and keys reach its marks."""

import pytest
from playwright.sync_api import expect

from evalboard.importers.files import LogFile
from runs.forced import create_forced, create_forced_pair
from runs.imports import import_logs
from tests import forced, rollouts
from tests.browser import looks
from tests.frontend import two_runs

pytestmark = pytest.mark.browser


@pytest.fixture
def runs(stage):
    """Two runs that part at a near tie of case 2, each scored on the other's stack, and a scoring that waits."""
    ours, theirs = two_runs.near_tie(2)
    baseline, candidate = two_runs.make(
        {2: ours}, {2: theirs}, by=stage.engine(stage.worker("other"), dtype="bfloat16")
    )
    scorings = create_forced_pair(baseline_id=baseline.pk, candidate_id=candidate.pk)
    by_id = {run.pk: run for run in (baseline, candidate)}
    for (_, stack), scoring in scorings.items():
        forced.scored(scoring, by=by_id[stack].repeats.get(index=1).engine_processes.get(), other_at=4)
    ended = scorings[baseline.pk, candidate.pk]
    return baseline, candidate, ended, create_forced(run_id=baseline.pk, endpoint="local")


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_every_page_fits_and_can_be_read_by_everybody(runs, watch, theme, width):
    baseline, candidate, ended, waiting = runs
    watched = watch(theme=theme, width=width)
    comparison = f"/compare/{baseline.pk}/{candidate.pk}/"
    for address in (
        f"/runs/{baseline.pk}/forced/",
        f"/forced/{ended.pk}/",
        f"/forced/{waiting.pk}/",
        comparison,
        f"{comparison}cases/case-002/?repeat=1,1",
    ):
        watched.open(address)
        assert watched.overflow() == 0, address
        assert watched.barriers() == [], address
    watched.check()


@pytest.fixture
def planted(stage, tmp_path):
    """A run of rollouts whose trainer lies off at position 17 of the fourth, read from a file."""
    path = tmp_path / "step-12.jsonl"
    path.write_bytes(rollouts.content(rollouts.rows(n=8, planted=(3, 17))))
    [run] = import_logs(files=[LogFile(path.name, path)], user=None)[1]
    return run


@pytest.mark.nightly
def test_a_planted_mismatch_is_two_clicks_from_its_run(planted, watch):
    watched = watch()
    page = watched.open(f"/runs/{planted.pk}/")
    page.get_by_role("link", name="The answers furthest off").click()
    page.locator(".forced-answers tbody a").first.click()
    expect(page.locator("h1")).to_have_text("roll-3")
    expect(page.locator("#alternatives h2")).to_have_text("At 17")
    expect(page.locator("#alternatives .elsewhere")).to_contain_text("log r −2.500")
    expect(page.locator('[aria-current="true"][data-position]')).to_have_attribute("data-position", "17")
    page.wait_for_load_state()
    page.locator('[aria-current="true"][data-position]').press("ArrowLeft")
    expect(page.locator("#alternatives h2")).to_have_text("At 16")
    page.keyboard.press("]")
    expect(page.locator("#alternatives h2")).to_have_text("At 17")
    watched.check()


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_the_pages_of_rollouts_fit_and_can_be_read_by_everybody(planted, watch, theme, width):
    watched = watch(theme=theme, width=width)
    scoring = planted.forced_scorings.get()
    for address in (
        f"/runs/{planted.pk}/",
        f"/runs/{planted.pk}/forced/",
        f"/forced/{scoring.pk}/",
        f"/runs/{planted.pk}/repeats/1/cases/roll-3/?at=17",
    ):
        watched.open(address)
        assert watched.overflow() == 0, address
        assert watched.barriers() == [], address
    watched.check()


@pytest.mark.nightly
def test_keys_stop_at_tokens_that_the_other_stack_would_not_have_chosen(runs, watch):
    baseline, candidate, *_ = runs
    watched = watch()
    page = watched.open(f"/compare/{baseline.pk}/{candidate.pk}/cases/case-002/?repeat=1,1&at=3")
    page.keyboard.press("]")
    expect(page.locator("#alternatives h2")).to_have_text("At 4")
    page.keyboard.press("[")
    expect(page.locator("#alternatives h2")).to_have_text("At 3")
    watched.check()
