"""Of two claims that exclude each other a page makes one: each situation would make both without `EXCLUDED`."""

from collections.abc import Callable
from typing import Any

import pytest

from evalboard.compared.report import Named, NamedSide, write_comparison
from evalboard.contract.base import Note
from evalboard.contract.bucket import VarianceParts
from evalboard.contract.compare import CaseOutcome, ComparisonProgress
from evalboard.contract.parts import ByChance
from evalboard.contract.run import SuiteNamed
from evalboard.contract.treatments import Terms
from evalboard.wording import messages, numbers
from evalboard.wording.comparability import explain_block
from evalboard.wording.messages import list_excluded, record_claims
from evalboard.wording.outcomes import compare_with_chance, explain_marks, explain_passes
from evalboard.wording.run import describe_split, split_code
from evalboard.wording.run_warnings import WARNINGS, WarnedRun, list_warnings
from frontend.compare.words import describe_comparison
from frontend.release.notes import cause_ticks, reservations
from frontend.release.page import context
from frontend.release.words import describe_treatment
from frontend.templatetags.numbers import noise_floor
from tests.frontend import release_stage as staged

BOTH = (("baseline", 61), ("candidate", 62))
SIDE = NamedSide(
    run="1",
    suite=SuiteNamed(slug="sums", version=1),
    endpoint="local",
    profile="pinned",
    profile_version=1,
    model="paint",
    scorer_digest="a" * 64,
    points={},
    left_out={},
    targeted=(),
)
LINE = {"cause": "near_tie", "points": -3.0, "n_cases": 3, "gained": 0.0, "lost": -3.0, "parts": [], "noise": None}
UNMEASURED = {"up_to": None, "reason": "one_draw"}
MOVED = {"field": "versions.vllm", "baseline": "0.31.2", "candidate": "0.32.0"}


def write_summary(**facts: Any) -> Any:
    """Write a comparison of which this much is known."""
    score = {"baseline": 80.0, "candidate": 77.0, "difference": -3.0}
    summary = {"score": score, "ledger": [LINE], "noise_share": UNMEASURED, **facts}
    named = Named(sides=(SIDE, SIDE), buckets={}, backends={}, case_ids={}, read_words=lambda _: None)  # type: ignore[arg-type, return-value]
    progress = ComparisonProgress(status="finished", n_done=1, n_total=1, error=None)
    return write_comparison(summary, named, repeat=None, progress=progress, finished_at=None, url="")


def near_ties_beyond_chance() -> None:
    """A near tie is next to a case whose change is beyond chance."""
    by_chance = {"n_expected": 0.2, "n_beyond": 3}
    known = {"broken": 3, "fixed": 0, "unstable": 0, "broken_by_chance": by_chance, "is_in_every_repeat": False}
    report = write_summary(outcomes=known)
    explain_marks(ByChance(**by_chance))
    assert "Near ties account for −3.0 points." in report.noise_share.text


def near_ties_in_every_repeat() -> None:
    known = {"broken": 3, "fixed": 0, "unstable": 0, "is_in_every_repeat": True}
    compare_with_chance(write_summary(outcomes=known).outcomes)


def noise_floor_without_noise() -> None:
    """A release has a measured floor of 0.3, and its comparison says that noise was not measured."""
    comparison = write_summary()
    side = staged.side(62, (80.0,) * 5, noise=staged.noise(0.3))
    report = staged.report(staged.gate(candidate=side, baseline=staged.side(61, (80.0,) * 5, noise=staged.noise(0.3))))
    assert cause_ticks(report, {}, comparison)[2].remarks


def batching_unknown_and_measured() -> None:
    """A run of a log repeats its seeds under another batch class, which measures what batching does."""
    parts = VarianceParts(total=0.3, sampler=0.0, batch=0.3)
    text = describe_split(parts, n_buckets=1, is_external=False)
    assert text.startswith("Repeats differ by 0.3 points, all of it from batching.")
    codes = [f"split.{split_code(parts, is_external=False)}"]
    warnings = list_warnings(WarnedRun(is_reported=True, is_logged=True, tool="a tool"), with_codes=codes)
    assert "imported" in {warning.code for warning in warnings}


def because_and_maybe(code: str) -> None:
    """The first sentence names the stack as the cause, and the banner says that it may be."""
    text = explain_block(code, {"moved": [MOVED]})
    line = staged.compared().ledger[0].model_copy(update={"cause": "backend_changed"})
    report = staged.compared(blocks=(Note(code=code, text=text),), ledger=(line,))
    assert "another serving stack answered" in describe_comparison(report).claim


SITUATIONS: dict[str, Callable[[], None]] = {
    "near ties next to cases beyond chance": near_ties_beyond_chance,
    "near ties next to changes in every repeat": near_ties_in_every_repeat,
    "a noise floor next to noise that was not measured": noise_floor_without_noise,
    "batching that is unknown and measured": batching_unknown_and_measured,
    "a stack that is the cause, and may be": lambda: because_and_maybe("rebaseline"),
    "a stack that is the cause, next to another model": lambda: because_and_maybe("stack_changed"),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_of_two_claims_that_exclude_each_other_a_page_makes_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, record_claims() as both:
        patch.setattr(messages, "EXCLUDED", ())
        SITUATIONS[name]()
    with record_claims() as claims:
        SITUATIONS[name]()
    excluded = [list_excluded({claim.code for claim in each}) for each in (both, claims)]
    assert (len(excluded[0]), excluded[1]) == (1, [])


def test_a_pair_names_messages_that_exist() -> None:
    """This file has imported the tables of the pages too."""
    codes = {f"{table.name}.{code}" for table in messages.TABLES for code in table}
    codes |= {f"run.{row.code}" for row in WARNINGS}
    assert {code for pair in messages.EXCLUDED for code in pair} <= codes


def test_repeats_that_scored_the_same_measure_no_floor() -> None:
    sides = {name: staged.side(run, (80.0,) * 5, noise=staged.noise(0.0)) for name, run in BOTH}
    remarks = [each.text for each in cause_ticks(staged.report(staged.gate(**sides)), {}, None)[2].remarks]
    assert "The noise of both sides is not measured: all repeats scored the same." in remarks
    assert not any("Noise floor" in each for each in remarks)
    values = (None, 0.0, 0.3, 0.04)
    assert [noise_floor(value) for value in values] == ["–", "– (all repeats scored the same)", "0.3", "0.04"]
    assert [numbers.spread(value) for value in values] == ["", "", "± 0.3", "± 0.04"]


def test_the_servers_that_answered_are_counted_and_not_the_sides() -> None:
    """Both sides have the same bucket, which is one server."""
    bucket = staged.bucket()
    page = context(
        staged.of_kind("ship"), buckets={61: [bucket], 62: [bucket]}, changes=(), comparison=None, between=None
    )
    assert (len(page["bucket_lines"]), page["servers"]) == (2, "1 server")


def test_a_stack_that_is_judged_needs_the_same_model_and_does_not_claim_it() -> None:
    assert describe_treatment(Terms("stack", "input")) == "the serving stack; both sides must have the same model"


def test_what_speaks_against_a_ship_is_on_its_first_screen() -> None:
    text = "On cases outside this suite, a drop of 3.9 points cannot be ruled out."
    warnings = (staged.warning("reach_wide", text), staged.warning("one_process", "Known.", severity="info"))
    shipped = staged.of_kind("ship").model_copy(update={"warnings": warnings})
    assert [each.text for each in reservations(shipped)] == [text]
    assert reservations(shipped.model_copy(update={"verdict": "no_ship"})) == ()


def test_passes_of_fewer_repeats_than_the_score_say_what_they_leave_out() -> None:
    """The head says "over 5 repeats", and a list says "1 of 1" where all are copies of one answer."""
    sides = staged.compared().sides
    known = {"case": "a", "chance": None, "is_beyond_chance": False, "cause": None, "url": ""}
    every = [
        CaseOutcome.model_construct(scores_baseline=(100.0,) * 5, scores_candidate=(0.0,) * n, **known) for n in (5, 1)
    ]
    assert explain_passes(sides, every[:1]) == ""
    assert explain_passes(sides, every).startswith("Passes leave out copies")
