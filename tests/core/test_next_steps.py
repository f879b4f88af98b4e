"""Which steps a verdict offers, for which sides, and in what order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from evalboard.contract.release import Expected, TargetedSettling
from evalboard.contract.run import Draws
from evalboard.core.profile import OBSERVED
from evalboard.core.release import next_steps
from evalboard.core.release.evidence import CopiedSide, Evidence, find_evidence
from evalboard.core.release.gate import Missing, VerdictLine
from evalboard.core.release.settle import SettlingLook
from evalboard.core.stats import COPIED, POWER
from evalboard.core.stats.load import BATCHES, LoadDifference, SideLoad
from tests.core.questions import PAIRED, pinned

EVIDENCE = replace(find_evidence(pinned(), PAIRED, is_comparable=True), is_steady=False)
SAMPLED = Draws(temperature=0.7, seed=7, repeats=(1, 2, 3, 4, 5))
LOAD = LoadDifference(SideLoad(1.0, 1, 1, 1, 1.0), SideLoad(8.0, 8, 8, 8, 0.0), BATCHES)


def lines(*names: str, **facts: Any) -> list[VerdictLine]:
    return [VerdictLine(name, facts) for name in names]


def codes(steps: Sequence[VerdictLine]) -> list[str]:
    return [step.code for step in steps]


def copied(side: str = "baseline", **facts: Any) -> CopiedSide:
    whole = {"is_one_answer": True, "is_checked": False, "does_first_differ": False, **facts}
    return CopiedSide(side=side, n_repeats=5, n_draws=1.0, n_cases=80, n_total=80, **whole)


def batch_class(baseline: str | None, candidate: str | None) -> dict[str, Any]:
    return {"moved": [{"baseline": baseline, "candidate": candidate}]}


@pytest.mark.parametrize(
    ("code", "facts", "step", "sides"),
    [
        pytest.param(
            "scorer_changed", {"is_awaited": True}, "await_scores", ["baseline"], id="scores-are-on-their-way"
        ),
        pytest.param("scorer_changed", {}, "rebaseline", [], id="no-rerun-changes-a-scorer"),
        pytest.param("stack_changed", {}, "rebaseline", ["baseline"], id="another-stack"),
        pytest.param("mixed_fingerprint", {"side": "candidate"}, "pin_batch", ["candidate"], id="the-mixed-side"),
        pytest.param("batch_class", batch_class("alone", "fixed"), "rebaseline", ["candidate"], id="batches"),
        pytest.param("batch_class", batch_class(None, "fixed"), "rebaseline", [], id="batches-unknown"),
        pytest.param("batch_class", batch_class("fixed", OBSERVED), "rebaseline", [], id="batches-only-observed"),
        pytest.param(
            "batch_class",
            {**batch_class("alone", "fixed"), "is_stack_judged": True},
            "rebaseline",
            [],
            id="batches-are-judged",
        ),
    ],
)
def test_a_block_names_the_sides_that_undo_it(code: str, facts: dict, step: str, sides: list[str]) -> None:
    [offered] = next_steps.list_block_steps(VerdictLine(code, facts))
    assert (offered.code, offered.facts["sides"]) == (step, sides)


def test_only_a_side_that_lacks_answers_is_run_again() -> None:
    missing = Missing(n_baseline=0, n_candidate=3, share=0.0, low=None, high=None)
    [step] = next_steps.list_missing_steps(replace(EVIDENCE, missing=missing))
    assert step.facts == {"n_missing": 3, "sides": ["candidate"]}


@pytest.mark.parametrize(
    ("copies", "are_reported", "offered"),
    [
        ((copied(),), False, ["shuffle"]),
        ((copied(), copied("candidate")), True, ["second_run", "nothing_caches"]),
        ((copied(), copied("candidate", is_checked=True)), True, ["run_uncached"]),
        ((copied(), copied("candidate", is_one_answer=False)), True, ["run_uncached"]),
    ],
    ids=["ours", "one-answer-each", "one-is-checked", "one-differs"],
)
def test_copies_are_checked_only_where_each_side_is_one_unchecked_answer(
    copies: tuple[CopiedSide, ...], are_reported: bool, offered: list[str]
) -> None:
    steps = next_steps.list_few_draws_steps(COPIED, replace(EVIDENCE, copies=copies, are_reported=are_reported))
    assert codes(steps) == offered
    assert steps[0].facts.get("sides", ["baseline", "candidate"]) == ["baseline", "candidate"]


def test_a_second_run_of_a_log_is_a_second_log() -> None:
    second, other = next_steps.with_logs(lines("second_run", "nothing_caches", sides=["baseline"]), ["baseline"])
    assert second.facts == {"sides": ["baseline"], "is_logged": True}
    assert other.facts == {"sides": ["baseline"]}


def test_a_noisy_judge_is_repeated_before_anything_else_lessens_noise() -> None:
    steps = lines("settle", "pin_batch", "larger_suite")
    settle, *others = next_steps.with_judge(steps, is_judged=True, is_noisy=True)
    assert (settle.facts, codes(others)) == ({"is_judged": True}, ["judge_more", "larger_suite"])
    assert not any("is_judged" in step.facts for step in others)
    assert codes(next_steps.with_judge(steps, is_judged=True)) == codes(steps)
    assert codes(next_steps.with_judge(lines("sign"), is_judged=True, is_noisy=True)) == ["sign"]
    undone = lines("pin_batch", block="mixed_fingerprint")
    assert codes(next_steps.with_judge(undone, is_judged=True, is_noisy=True)) == ["judge_more", "pin_batch"]


def test_a_step_for_servers_of_others_stands_once_and_only_where_one_was_called() -> None:
    steps = lines("pin_batch", "pin_backend", "use_paired")
    assert codes(next_steps.with_others(steps, are_called=True)) == ["pin_endpoint", "use_paired"]
    assert codes(next_steps.with_others(steps, are_called=False)) == codes(steps)


@pytest.mark.parametrize(
    ("facts", "steps", "offered"),
    [
        pytest.param({}, ["settle"], ["settle"], id="alike"),
        pytest.param({"load": LOAD}, ["settle"], ["run_in_turn", "settle"], id="load"),
        pytest.param({"wanders": True}, ["settle"], ["run_in_turn", "settle"], id="runs-wander"),
        pytest.param({"load": LOAD, "change": None}, ["settle"], ["settle"], id="no-change-is-read"),
        pytest.param({"load": LOAD, "is_in_turn": True}, ["settle"], ["settle"], id="they-took-turns"),
        pytest.param({"load": LOAD}, ["settle", "run_in_turn"], ["settle", "run_in_turn"], id="already-offered"),
    ],
)
def test_sides_of_other_loads_are_to_take_turns_first(facts: dict, steps: list[str], offered: list[str]) -> None:
    assert codes(next_steps.with_load(lines(*steps), replace(EVIDENCE, **facts))) == offered


UNLIKELY, LIKELY = SettlingLook(10, POWER - 0.2), SettlingLook(10, POWER)
EXPECTED = Expected(repeats=10, low=-1.0, high=0.0)


def targeted(chance: float) -> TargetedSettling:
    return TargetedSettling(repeats=5, n_cases=40, chance=chance)


REST = ["larger_suite", "decide_by_hand"]


@pytest.mark.parametrize(
    ("settling", "expected", "needed", "few", "facts", "offered"),
    [
        pytest.param(UNLIKELY, EXPECTED, None, None, {}, ["settle", "pin_batch", *REST], id="hardly"),
        pytest.param(LIKELY, EXPECTED, None, None, {}, ["settle"], id="likely"),
        pytest.param(LIKELY, EXPECTED, {10: 90}, None, {}, ["settle", "larger_suite"], id="too-few-cases-too"),
        pytest.param(UNLIKELY, EXPECTED, {10: 90}, None, {}, ["settle", *REST], id="noise-is-not-what-lacks"),
        pytest.param(UNLIKELY, EXPECTED, None, None, {"is_steady": True}, ["settle", *REST], id="steady"),
        pytest.param(SettlingLook(None, 0.05), EXPECTED, None, None, {}, ["pin_batch", *REST], id="no-look"),
        pytest.param(UNLIKELY, None, None, None, {}, ["pin_batch", *REST], id="nothing-to-expect"),
        pytest.param(
            UNLIKELY, EXPECTED, None, targeted(POWER), {}, ["settle_targeted", "settle"], id="the-noisiest-settle-it"
        ),
        pytest.param(
            UNLIKELY,
            EXPECTED,
            None,
            targeted(UNLIKELY.chance),
            {"is_steady": True},
            ["settle_targeted", "settle", *REST],
            id="the-noisiest-as-often",
        ),
        pytest.param(
            UNLIKELY,
            EXPECTED,
            None,
            targeted(UNLIKELY.chance - 0.1),
            {"is_steady": True},
            ["settle", "settle_targeted", *REST],
            id="the-noisiest-more-rarely",
        ),
        pytest.param(
            UNLIKELY,
            EXPECTED,
            None,
            None,
            {"draws_baseline": SAMPLED, "draws_candidate": SAMPLED},
            ["share_seeds", "settle", *REST],
            id="draws-of-other-seeds",
        ),
        pytest.param(
            UNLIKELY,
            EXPECTED,
            None,
            None,
            {"draws_baseline": SAMPLED, "draws_candidate": SAMPLED, "share_seeds": True},
            ["settle", *REST],
            id="draws-share-their-seeds",
        ),
        pytest.param(
            UNLIKELY,
            EXPECTED,
            None,
            None,
            {"draws_baseline": replace(SAMPLED, seed=None), "draws_candidate": SAMPLED},
            ["settle", *REST],
            id="draws-without-a-seed",
        ),
        pytest.param(
            UNLIKELY,
            EXPECTED,
            None,
            None,
            {"draws_baseline": Draws(seed=7), "is_steady": True},
            ["settle", *REST],
            id="greedy-with-a-seed",
        ),
    ],
)
def test_an_open_verdict_offers_what_settles_it_most_cheaply_first(
    settling: SettlingLook,
    expected: Expected | None,
    needed: dict[int, int] | None,
    few: TargetedSettling | None,
    facts: dict,
    offered: list[str],
) -> None:
    steps = next_steps.list_open_steps(replace(EVIDENCE, **facts), settling, expected, needed, few)
    assert codes(steps) == offered
    for step in steps:
        if step.code == "larger_suite":
            assert step.facts["needed"] == ([[10, 90]] if needed else None)


def test_of_one_seed_only_the_side_that_lacks_repeats_gets_them() -> None:
    fewer = replace(SAMPLED, repeats=(1, 2))
    for theirs, sides in ((fewer, ["candidate"]), (replace(fewer, seed=8), ["candidate"]), (SAMPLED, [])):
        evidence: Evidence = replace(EVIDENCE, draws_baseline=SAMPLED, draws_candidate=theirs)
        step = next_steps.list_open_steps(evidence, UNLIKELY, None, None, None)[0]
        assert (step.code, step.facts["sides"]) == ("share_seeds", sides)
    evidence = replace(EVIDENCE, draws_baseline=fewer, draws_candidate=SAMPLED)
    assert next_steps.list_open_steps(evidence, UNLIKELY, None, None, None)[0].facts["sides"] == ["baseline"]
