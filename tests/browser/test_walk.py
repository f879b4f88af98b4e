"""The engineer's way from the board to the token that decided, to what a replay of it finds, and back; clicks and
seconds are recorded with the test (`--junitxml`).
"""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from runs.catalogue import store_default_policies
from runs.models import ReleaseRecord, ReplayRecord, RunRecord
from runs.release import create_release
from tests.frontend import toolcalls_stage
from tests.worker.conftest import (
    Start,
    Wait,
    ended,
    kill_group,
    new_run,
    processes,
    scripted_python,
    start_worker,
    wait_until,
)

__all__ = ["new_run", "processes", "scripted_python", "start_worker", "wait_until"]
pytestmark = pytest.mark.browser
MAX_CLICKS_TO_THE_TOKEN = 3
N_CASES = 12
BROKEN_ALONE = json.dumps({"1": {"word": "bled"}})  # what an engine answers where nothing shares its steps


class Walk:
    """Counts the clicks of a walk."""

    def __init__(self) -> None:
        self.clicks = 0
        self.began = time.monotonic()

    def click(self, link: Locator) -> None:
        link.click()
        self.clicks += 1

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self.began, 1)


@pytest.fixture
def release(transactional_db: None, settings: Any) -> ReleaseRecord:
    """A no-ship of runs with traces."""
    store_default_policies()
    baseline, candidate = toolcalls_stage.pair(model_root=settings.MODEL_ROOTS[0], n_cases=36)
    gate = {"suite": toolcalls_stage.SLUG, "baseline": baseline.pk, "candidate": candidate.pk}
    return create_release(gates=[gate], policy="paired")


@pytest.fixture
def setup() -> dict[str, str]:
    return {"REDIS_URL": ""}


@pytest.fixture
def decoded(new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait) -> ReleaseRecord:
    """A release of runs that workers decoded; the one that broke every answer is still there to decode again."""
    store_default_policies()

    def decode(**environment: str) -> RunRecord:
        run = new_run(["say blue"] * N_CASES, repeats=1)
        worker = start_worker(EVALBOARD_RESPONSE_SECONDS="20", **environment)
        wait_until(lambda: ended(run), "the run ends")
        if not environment:
            kill_group(worker)
        return run

    baseline, candidate = decode(), decode(SCRIPTED_RECORDED=BROKEN_ALONE)
    gate = {"suite": "words", "baseline": baseline.pk, "candidate": candidate.pk}
    return create_release(gates=[gate], policy="paired")


@pytest.mark.nightly
def test_from_the_board_to_the_token_to_a_replay_and_back(
    decoded: ReleaseRecord, watch: Callable[..., Any], record_property: Callable[[str, object], None]
) -> None:
    watched = watch()
    page = watched.open("/")
    walk = Walk()
    walk.click(page.locator(f'main a[href^="/releases/{decoded.pk}/"]').first)
    page.wait_for_url(f"**/releases/{decoded.pk}/**")
    listed = page.url
    walk.click(page.get_by_role("heading", name="The three worst cases"))
    walk.click(page.locator('a[href*="outcome=broken"]:visible').first)
    flip = page.locator(".baseline .token.flip")
    expect(flip).to_be_visible()
    assert flip.evaluate("token => getComputedStyle(token).outlineWidth") == "2px"
    record_property("clicks to the token", walk.clicks)
    record_property("seconds to the token", walk.seconds)
    assert walk.clicks <= MAX_CLICKS_TO_THE_TOKEN
    walk.click(page.get_by_text("Decode again…"))
    walk.click(page.get_by_role("button", name="Decode again", exact=True))
    read = "Flips first at batch size 2, position 2: ‘e’ → ‘u’"
    expect(page.locator("#replay")).to_contain_text(read)
    assert ReplayRecord.objects.get().run_id == decoded.gates.get().candidate_run_id
    record_property("clicks to the replay", walk.clicks)
    record_property("seconds to what it found", walk.seconds)
    page.go_back()
    page.go_back()
    assert page.url == listed
    record_property("clicks in all", walk.clicks + 2)
    record_property("seconds in all", walk.seconds)
    watched.check()


@pytest.mark.nightly
@pytest.mark.parametrize("width", [390, 1280])
def test_the_ledger_with_its_noise_fits_and_has_no_barrier(
    release: ReleaseRecord, watch: Callable[..., Any], width: int
) -> None:
    watched = watch(width=width)
    gate = release.gates.get()
    compared = f"/compare/{gate.baseline_run_id}/{gate.candidate_run_id}/"
    for address in (f"/releases/{release.pk}/", compared):
        page = watched.open(address)
        page.locator("details:has(table.ledger)").evaluate_all("folds => folds.forEach(fold => (fold.open = true))")
        expect(page.locator("table.ledger td.noise").first).to_be_visible()
        assert (watched.overflow(), watched.barriers()) == (0, []), address
    watched.check()


def test_from_the_board_to_the_token_and_back_by_keys_alone(
    release: ReleaseRecord, watch: Callable[..., Any], record_property: Callable[[str, object], None]
) -> None:
    watched = watch()
    page = watched.open("/")
    began, pressed = time.monotonic(), 0

    def press(*keys: str) -> None:
        nonlocal pressed
        for key in keys:
            page.wait_for_load_state()  # a key that comes before the page's scripts is nobody's
            page.keyboard.press(key)
            pressed += 1

    press("j", "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("No-ship")
    press("n")
    heading, flip = page.get_by_role("heading", level=1), page.locator(".baseline .token.flip")
    expect(flip).to_have_attribute("aria-current", "true")
    case = heading.inner_text()
    press("n")
    expect(heading).not_to_have_text(case)
    press("p")
    expect(heading).to_have_text(case)
    at = page.locator("#alternatives h2").inner_text()
    press("[")
    expect(page.locator("#alternatives h2")).not_to_have_text(at)
    record_property("keys to the token", 3)
    for _ in range(4):
        page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Board")
    press("j")
    expect(page.locator(f"#release-{release.pk}")).to_be_focused()
    record_property("keys in all", pressed + 4)
    record_property("seconds in all", round(time.monotonic() - began, 1))
    watched.check()


@pytest.mark.nightly
def test_few_tabs_lead_to_the_act_of_a_release_and_to_the_first_token(
    release: ReleaseRecord, watch: Callable[..., Any], record_property: Callable[[str, object], None]
) -> None:
    watched = watch(role="release manager")

    def count_tabs(address: str, skip: str, there: str) -> int:
        page = watched.open(address)
        page.wait_for_load_state()
        for n in range(1, 30):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent.trim()") == skip:
                page.keyboard.press("Enter")
            if page.evaluate("there => document.activeElement.matches(there)", there):
                return n
        raise AssertionError(address)

    gate = release.gates.get()
    act = count_tabs(f"/releases/{release.pk}/", "Skip to what to do", "main .primary")
    listed = watched.open(f"/compare/{gate.baseline_run_id}/{gate.candidate_run_id}/?outcome=broken")
    pair = listed.locator("table.changed tbody th a").first.get_attribute("href")
    token = count_tabs(pair, "Skip to the first token", ".token")
    record_property("Tabs to the act of a release", act)
    record_property("Tabs to the first token", token)
    assert act <= 4
    assert token <= 6
    page = watched.open(f"/releases/{release.pk}/")
    page.wait_for_load_state()
    page.keyboard.press("s")
    expect(page.locator("form#sign")).to_be_visible()
    watched.check()
