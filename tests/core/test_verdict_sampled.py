"""Verdicts over sampled runs: draws that share their seeds, draws that do not, and repeats that are one draw."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalboard.contract.run import Draws
from evalboard.core.release import verdict
from evalboard.core.release.gate import GateQuestion
from evalboard.core.release.gate_verdict import GateVerdict
from evalboard.core.scoring import PASS_ALL, PASS_AT, MetricSpec
from evalboard.core.stats import paired
from evalboard.core.stats.quantiles import normal_quantile, student_quantile
from tests.core.questions import PAIRED, STRICT, question, reasons, steps, warnings

FIVE = (1, 2, 3, 4, 5)
SEED_42, SEED_43 = Draws(0.7, 42, repeats=FIVE), Draws(0.7, 43, repeats=FIVE)
ONE = Draws(0.7, None, is_one=True, repeats=FIVE)


def drawn(ours: Draws = SEED_42, theirs: Draws = SEED_42, *, n_parted: int = 16, n_cases: int = 800) -> GateQuestion:
    """Every case passes about 3 times in 5; the sides draw alike but for some cases, which draw by themselves."""
    rng = np.random.default_rng(11)
    baseline = (rng.random((n_cases, 5)) < 0.6).astype(np.float64)
    candidate = baseline.copy()
    candidate[:n_parted] = rng.random((n_parted, 5)) < 0.6
    return question(baseline, candidate, draws_baseline=ours, draws_candidate=theirs)


def width(found: GateVerdict) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


def codes(lines: Any) -> list[str]:
    return [line.code for line in lines]


def test_draws_of_one_seed_are_held_against_each_other() -> None:
    """V = max(Σ var of the differences, 3/5) / 800², SE = sqrt(V/5); 2 % of cases parted, the rest cancels."""
    asked = drawn()
    found = verdict.judge_gate(asked, PAIRED)
    differences = asked.candidate - asked.baseline
    se = 100 * math.sqrt(differences.var(axis=1, ddof=1).sum() / 5) / 800
    assert (found.verdict, found.method) == ("ship", "seeds")
    assert width(found) == pytest.approx(2 * normal_quantile(0.97) * se)
    assert codes(found.warnings)[0] == "sampled"
    assert "Both sides use seed 42" in warnings(found)[0]
    assert width(verdict.judge_gate(drawn(theirs=SEED_43), PAIRED)) > 5 * width(found)


def test_models_that_draw_alike_are_settled_to_what_was_never_seen() -> None:
    found = verdict.judge_gate(drawn(n_parted=0), PAIRED)
    assert found.difference == 0.0
    assert width(found) == pytest.approx(2 * normal_quantile(0.97) * 100 * math.sqrt(0.6 / 5) / 800)
    # One noise has to show itself, and not one a side: 93 cases at 5 repeats become 66.
    assert found.cases_needed[5] == 66


@pytest.mark.parametrize(
    ("theirs", "why"),
    [
        (SEED_43, "seeds 42 and 43"),
        (Draws(0.7, None, repeats=FIVE), "they share no seeds"),
        (Draws(0.7, 42, repeats=(1, 2, 3, 4, 6)), "they have different repeats"),
    ],
)
def test_without_shared_seeds_draws_are_independent_and_the_verdict_says_so(theirs: Draws, why: str) -> None:
    found = verdict.judge_gate(drawn(theirs=theirs), PAIRED)
    greedy = verdict.judge_gate(drawn(Draws(), Draws()), PAIRED)
    assert (found.low, found.high, found.method) == (greedy.low, greedy.high, "flips")
    assert why in warnings(found)[0]
    if found.verdict == "inconclusive":
        assert codes(found.next)[0] == "share_seeds"
        lacks = ["baseline", "candidate"] if theirs.seed == 42 else ["candidate"]  # repeats of the other
        assert found.next[0].facts["sides"] == lacks


def test_which_formula_holds_is_decided_before_any_score_is_looked_at() -> None:
    """Draws that go against each other make the shared interval the wider one, and it stays."""
    ours = np.tile([1.0, 0.0, 1.0, 0.0, 1.0], (800, 1))
    ours[400:] = 1 - ours[400:]
    shared = verdict.judge_gate(question(ours, 1 - ours, draws_baseline=SEED_42, draws_candidate=SEED_42), PAIRED)
    apart = verdict.judge_gate(question(ours, 1 - ours, draws_baseline=SEED_42, draws_candidate=SEED_43), PAIRED)
    assert width(shared) > 1.2 * width(apart)


def test_the_guard_is_not_asked_of_draws() -> None:
    """The range is the sampler's: under strict as under paired the paired data decide, and nothing is called noisy."""
    ours = np.zeros((800, 5))
    for repeat, n in enumerate((400, 420, 440, 460, 480)):
        ours[:n, repeat] = 1
    greedy = verdict.judge_gate(question(ours, ours), STRICT)
    assert codes(greedy.reasons) == ["noisy"]
    found = verdict.judge_gate(question(ours, ours, draws_baseline=SEED_42, draws_candidate=SEED_42), STRICT)
    assert found.verdict == "ship"
    assert "noisy_bucket" not in codes(found.warnings)


@pytest.mark.parametrize(("ours", "theirs"), [(ONE, SEED_42), (SEED_42, ONE), (ONE, ONE)])
def test_repeats_that_are_one_draw_take_no_verdict(ours: Draws, theirs: Draws) -> None:
    """Five equal repeats, or five that an unsteady engine made to differ: neither says how far a draw is off."""
    asked = drawn(ours, theirs)
    found = verdict.judge_gate(asked, PAIRED)
    assert (found.verdict, codes(found.reasons), codes(found.next)) == ("inconclusive", ["one_draw"], ["draw_again"])
    assert found.outlook.repeats_needed is None
    assert "used one seed at temperature 0.7" in reasons(found)[0]
    whose = " and ".join(name for name, draws in (("baseline", ours), ("candidate", theirs)) if draws.is_one)
    assert steps(found)[0].startswith(f"Run the {whose} again.")
    for draws, side, k in ((ours, found.baseline, found.k_baseline), (theirs, found.candidate, found.k_candidate)):
        if draws.is_one:
            assert (k, side.noise.sd_points, side.interval, side.noise.disagreement_rate) == (1, None, None, None)
            assert len(side.points) == 1
    assert width(found) > width(verdict.judge_gate(asked_as(asked, SEED_42), PAIRED))


def asked_as(asked: GateQuestion, draws: Draws) -> GateQuestion:
    return question(asked.baseline, asked.candidate, draws_baseline=draws, draws_candidate=draws)


def test_the_first_answer_that_is_there_stands_for_one_draw() -> None:
    asked = drawn(ONE, ONE)
    asked.baseline[0, 0] = np.nan
    found = verdict.judge_gate(asked, PAIRED)
    assert (found.n_cases_judged, found.missing.n_baseline) == (800, 0)


def test_whole_runs_of_shared_draws_that_move_together_are_judged_by_runs() -> None:
    ours = np.ones((100, 5))
    theirs = ours.copy()
    theirs[:10, 1] = theirs[:20, 2] = theirs[:15, 3] = 0
    found = paired.estimate_difference(ours, theirs, share_seeds=True)
    assert (found.method, found.df) == ("runs", 4)
    assert found.se == pytest.approx(100 * (theirs - ours).mean(axis=0).std(ddof=1) / math.sqrt(5))
    assert found.half_width(0.03) == pytest.approx(student_quantile(0.97, 4) * found.se)


@pytest.mark.parametrize("graded", [False, True])
def test_sides_mirror_and_order_changes_nothing_to_the_bit(graded: bool) -> None:
    rng = np.random.default_rng(4)
    ours, theirs = rng.random((2, 60, 5)) if graded else rng.integers(0, 2, (2, 60, 5)).astype(float)
    found = paired.estimate_difference(ours, theirs, share_seeds=True)
    mirrored = paired.estimate_difference(theirs, ours, share_seeds=True)
    assert (mirrored.se, mirrored.difference) == (found.se, -found.difference)
    cases, repeats = rng.permutation(60), rng.permutation(5)
    assert paired.estimate_difference(ours[cases][:, repeats], theirs[cases][:, repeats], share_seeds=True) == found
    ours[0] = theirs[0] = 0.3
    still = paired.measure_noise(ours[:1], theirs[:1], share_seeds=True)
    assert still.flips_shared == 0.0


def lost_to_luck(draws: Draws = SEED_42) -> GateQuestion:
    """Of 800 cases 400 pass in half of their draws; the candidate answers as many right, and always the same ones."""
    rng = np.random.default_rng(5)
    baseline = np.ones((800, 5))
    baseline[:400] = rng.random((400, 5)) < 0.5
    candidate = np.ones((800, 5))
    candidate[:200] = 0
    return question(baseline, candidate, draws_baseline=draws, draws_candidate=draws)


def test_the_policy_names_what_decides() -> None:
    """By the mean both sides are alike; of four draws one is right for the baseline 97 times in 100, and 75 here."""
    by_pass = replace(PAIRED, metric=MetricSpec(PASS_AT, 4))
    mean, passed = (verdict.judge_gate(lost_to_luck(), policy) for policy in (PAIRED, by_pass))
    assert (mean.metric, passed.metric) == ("mean", "pass@4")
    assert mean.difference == pytest.approx(0.0, abs=1.5)
    assert passed.verdict == "no_ship"
    assert passed.difference == pytest.approx(-50 * (1 - 0.5**4) + 25, abs=1.5)
    assert passed.candidate.score == 75.0
    assert (passed.candidate.points, passed.candidate.range) == ((), None)  # no repeat has a pass@4
    assert passed.low is not None
    assert passed.reach is not None
    assert passed.low < passed.difference < passed.reach.high
    assert "the change by pass@4 is" in reasons(passed)[0]
    by_all = verdict.judge_gate(lost_to_luck(), replace(PAIRED, metric=MetricSpec(PASS_ALL, 2)))
    assert (by_all.verdict, by_all.difference) == ("ship", pytest.approx(25 - 50 * 0.25, abs=1.5))


@pytest.mark.parametrize(
    ("asked", "why", "step"),
    [
        (lost_to_luck(Draws()), "answers are not random", "draw"),
        (drawn(n_parted=0), "Some scores are partial", "use_mean"),
    ],
)
def test_a_metric_that_these_runs_do_not_have_decides_nothing(asked: GateQuestion, why: str, step: str) -> None:
    if step == "use_mean":
        asked.baseline[0, 0] = 0.5
    found = verdict.judge_gate(asked, replace(PAIRED, metric=MetricSpec(PASS_AT, 2)))
    assert (found.verdict, codes(found.reasons), codes(found.next)[0]) == ("inconclusive", ["no_metric"], step)
    assert why in reasons(found)[0]
    assert found.difference is None


def test_before_the_first_look_there_is_a_lean_as_soon_as_a_draw_can_be_left_out() -> None:
    policy = replace(PAIRED, metric=MetricSpec(PASS_AT, 3))
    for k, leaning in ((3, None), (4, "no_ship")):
        asked = lost_to_luck(replace(SEED_42, repeats=FIVE[:k]))
        few = question(
            asked.baseline[:, :k],
            asked.candidate[:, :k],
            draws_baseline=asked.draws_baseline,
            draws_candidate=asked.draws_candidate,
        )
        found = verdict.judge_gate(few, policy)
        assert (codes(found.reasons), found.outlook.repeats_needed, found.outlook.leaning) == (
            ["too_few_repeats"],
            5 - k,
            leaning,
        )


def test_a_missing_draw_is_counted_both_ways_under_a_metric_too() -> None:
    asked = lost_to_luck()
    asked.candidate[700, 2] = np.nan
    found = verdict.judge_gate(asked, replace(PAIRED, metric=MetricSpec(PASS_ALL, 2)))
    assert (found.verdict, found.n_cases_judged, found.missing.n_candidate) == ("ship", 800, 1)
    assert found.missing.low is not None
    assert found.low is not None
    assert found.missing.low < found.low


@pytest.mark.parametrize("metric", [MetricSpec(PASS_AT, 2), MetricSpec(PASS_ALL, 4)])
def test_order_changes_nothing_under_a_metric_either(metric: MetricSpec) -> None:
    policy = replace(PAIRED, metric=metric)
    asked = drawn(SEED_42, SEED_43, n_cases=120)
    cases, repeats = np.random.default_rng(6).permutation(120), [3, 0, 4, 1, 2]
    shuffled = question(
        asked.baseline[cases][:, repeats],
        asked.candidate[cases][:, repeats],
        draws_baseline=asked.draws_baseline,
        draws_candidate=asked.draws_candidate,
    )
    first, second = (verdict.judge_gate(each, policy) for each in (asked, shuffled))
    assert (first.difference, first.low, first.high, first.reach) == (
        second.difference,
        second.low,
        second.high,
        second.reach,
    )
