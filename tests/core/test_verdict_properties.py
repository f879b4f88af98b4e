"""What must hold of every verdict, whatever the data: order, what cancels, what is worse, and the other way round."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench.simulated import asked
from evalboard.core.release import verdict
from evalboard.core.release.gate import GateQuestion
from evalboard.core.release.gate_verdict import GateVerdict
from evalboard.core.suite.policy import PolicySettings

SCORES = {"pass and fail": [0.0, 1.0], "graded": [0.0, 0.1, 0.25, 0.5, 0.7, 1.0]}
BEST_FIRST = ("ship", "inconclusive", "no_ship")

policies = st.builds(
    PolicySettings,
    rule=st.sampled_from(["strict", "paired"]),
    tolerance_points=st.sampled_from([1.0, 5.0, 20.0]),
    guard_points=st.sampled_from([1.0, 5.0, 100.0]),
    looks=st.sampled_from([(5, 10, 20), (3, 10, 20)]),
)


@st.composite
def questions(draw: st.DrawFn) -> GateQuestion:
    """Cases that mostly stay as they are, some unstable, a few missing; repeats from one to a few beyond a look."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([3, 20, 60, 120]))
    n_groups = draw(st.sampled_from([0, 2, 12]))
    values = SCORES[draw(st.sampled_from(sorted(SCORES)))]
    unstable, changed = draw(st.sampled_from([0.0, 0.05, 0.3])), draw(st.sampled_from([0.0, 0.1, 0.6]))
    missing = draw(st.sampled_from([0.0, 0.0, 0.004]))
    usual = rng.choice(values, n)
    sides = []
    for chances in (usual, np.where(rng.random(n) < changed, rng.choice(values, n), usual)):
        shape = (n, draw(st.sampled_from([1, 2, 3, 4, 5, 6, 10, 12])))
        scores = np.where(rng.random(shape) < unstable, rng.choice(values, shape), chances[:, None])
        sides.append(np.where(rng.random(shape) < missing, np.nan, scores))
        assume(not np.isnan(sides[-1]).all(axis=0).any())
    return GateQuestion(
        case_ids=[f"case-{index}" for index in range(n)],
        groups=[f"group-{index % n_groups}" if n_groups and index % 3 else "" for index in range(n)],
        baseline=sides[0],
        candidate=sides[1],
        setup_baseline=asked("a"),
        setup_candidate=asked("b"),
    )


def with_cases(question: GateQuestion, order: list[int]) -> GateQuestion:
    return replace(
        question,
        case_ids=[question.case_ids[index] for index in order],
        groups=[question.groups[index] for index in order],
        baseline=question.baseline[order],
        candidate=question.candidate[order],
    )


def with_one_more(question: GateQuestion, baseline: float, candidate: float) -> GateQuestion:
    """A case with one score in every repeat of a side."""
    return replace(
        question,
        case_ids=[*question.case_ids, "one more"],
        groups=[*question.groups, ""],
        baseline=np.vstack([question.baseline, np.full(question.baseline.shape[1], baseline)]),
        candidate=np.vstack([question.candidate, np.full(question.candidate.shape[1], candidate)]),
    )


def without_order(found: GateVerdict) -> GateVerdict:
    """Points stand by repeat, so they alone follow the repeats' order."""
    sides = {
        name: replace(side, points=tuple(sorted(side.points)))
        for name, side in (("baseline", found.baseline), ("candidate", found.candidate))
    }
    return replace(found, **sides)


@given(questions(), policies, st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_no_bit(question: GateQuestion, policy: PolicySettings, random) -> None:
    order = list(range(len(question.case_ids)))
    random.shuffle(order)
    assert verdict.judge_gate(with_cases(question, order), policy) == verdict.judge_gate(question, policy)


@given(questions(), policies, st.randoms(use_true_random=False))
def test_the_order_of_repeats_changes_no_bit(question: GateQuestion, policy: PolicySettings, random) -> None:
    """Of those that enter: beyond a look, which ones do is a matter of order."""
    k = min(question.baseline.shape[1], question.candidate.shape[1])
    look = max((look for look in policy.looks if look <= k), default=None)

    def shuffled(scores: np.ndarray) -> np.ndarray:
        enter = list(range(scores.shape[1] if look is None else look))
        random.shuffle(enter)
        return scores[:, [*enter, *range(len(enter), scores.shape[1])]]

    other = replace(question, baseline=shuffled(question.baseline), candidate=shuffled(question.candidate))
    assert without_order(verdict.judge_gate(other, policy)) == without_order(verdict.judge_gate(question, policy))


@given(questions(), policies)
def test_a_case_that_always_passes_might_as_well_always_fail(question: GateQuestion, policy: PolicySettings) -> None:
    passing = verdict.judge_gate(with_one_more(question, 1.0, 1.0), policy)
    failing = verdict.judge_gate(with_one_more(question, 0.0, 0.0), policy)
    for name in ("verdict", "difference", "low", "high", "level", "look", "method", "reach"):
        assert getattr(passing, name) == getattr(failing, name), name
    assert passing.outlook.leaning == failing.outlook.leaning
    assert [line.code for line in passing.reasons] == [line.code for line in failing.reasons]


@given(questions(), policies, st.sampled_from([0.0, 1.0]))
def test_a_case_broken_in_every_repeat_never_makes_it_better(
    question: GateQuestion, policy: PolicySettings, before: float
) -> None:
    whole = verdict.judge_gate(with_one_more(question, before, 1.0), policy)
    broken = verdict.judge_gate(with_one_more(question, before, 0.0), policy)
    assert BEST_FIRST.index(broken.verdict) >= BEST_FIRST.index(whole.verdict)
    if whole.low is not None and broken.low is not None:
        assert broken.low < whole.low


@given(questions(), policies)
def test_the_other_way_round_the_interval_is_mirrored(question: GateQuestion, policy: PolicySettings) -> None:
    there = verdict.judge_gate(question, policy)
    swapped = replace(question, baseline=question.candidate, candidate=question.baseline)
    back = verdict.judge_gate(swapped, policy)
    if there.low is None or there.high is None:
        assert back.low is None
        return
    assert (back.low, back.high, back.difference) == pytest.approx(
        (-there.high, -there.low, -there.difference), rel=1e-9, abs=1e-9
    )
    assert (back.level, back.look, back.method) == (there.level, there.look, there.method)


@given(questions(), policies)
def test_too_few_repeats_never_decide(question: GateQuestion, policy: PolicySettings) -> None:
    few = replace(question, candidate=question.candidate[:, : policy.looks[0] - 1])
    assert verdict.judge_gate(few, policy).verdict == "inconclusive"


@given(questions(), policies)
def test_a_verdict_keeps_to_its_interval(question: GateQuestion, policy: PolicySettings) -> None:
    found = verdict.judge_gate(question, policy)
    if found.verdict == "ship":
        assert found.low > -policy.tolerance_points
    if found.verdict == "no_ship":
        assert found.high < -policy.tolerance_points
