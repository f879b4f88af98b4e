"""What is measured of a judge: its noise, whether it moved, its agreement with labels; and the promised error rates."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import measured_table
from bench.simulated_judges import CLAIMS, WILD, JudgeClaim, decide, judged_pairs
from evalboard.contract.judge import JudgeNoise
from evalboard.contract.labels import ScorerLabels
from evalboard.core.release import next_steps
from evalboard.core.release.gate import VerdictLine
from evalboard.core.stats import (
    agreement,
    anchor_shift,
    corrected_rate,
    hypergeometric_tail,
    judge_noise,
    plan_anchor_draws,
    split_judge_variance,
)
from evalboard.wording.labels import describe_rate
from evalboard.wording.next_steps import STEPS
from tests.core.rates import assert_kept_in_few, count_errors, count_errors_allowed, group_by_promise, promised_errors

PAGE = Path(__file__).resolve().parents[2] / "docs" / "suites.md"
NAN = float("nan")
FEW = 10  # of each situation, in the gate
GRADED_FEW = [claim for claim in CLAIMS if claim.aim and claim.n_in_tests > 100]
MARKS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, NAN])
PASSES = st.sampled_from([0.0, 1.0, NAN])


def noise_of(variance: float) -> JudgeNoise:
    return JudgeNoise(
        n_answers=50, n_draws=150, disagreement=2 * variance, disagreement_interval=(0.0, 1.0), variance=variance
    )


def test_the_noise_is_the_share_of_pairs_that_differ() -> None:
    measured = judge_noise(np.array([[1, 1, 0], [0, 0, 0], [1, NAN, 1], [1, NAN, NAN]]))
    assert measured is not None
    assert (measured.n_answers, measured.n_draws) == (3, 8)
    assert measured.disagreement == pytest.approx(2 / 9)
    assert measured.variance == pytest.approx(1 / 9)  # half of it, where scores are 0 and 1
    low, high = measured.disagreement_interval
    assert 0 <= low < measured.disagreement < high <= 1
    assert judge_noise(np.array([[1.0, NAN], [NAN, NAN]])) is None


def test_a_judge_that_never_differs_may_still_differ() -> None:
    measured = judge_noise(np.ones((50, 3)))
    assert measured is not None
    assert measured.disagreement == 0
    assert measured.disagreement_interval == (0.0, pytest.approx(0.0714, abs=1e-4))


def test_the_test_of_one_anchor_is_fishers() -> None:
    """4 of 5 passed, then 1 of 5: twice the smaller tail."""
    shift = anchor_shift(np.array([[1.0, 1, 1, 1, 0]]), np.array([[1.0, 0, 0, 0, 0]]))
    assert shift is not None
    assert shift.p == pytest.approx(2 * hypergeometric_tail(10, 5, 5, 4))
    assert shift.points == pytest.approx(-60)


def test_the_test_of_several_anchors_is_the_convolution() -> None:
    """Two anchors of two draws each, of which one passed; both passes are on the same side once in four."""
    shift = anchor_shift(np.array([[0.0], [0.0]]), np.array([[1.0], [1.0]]))
    assert shift is not None
    assert (shift.p, shift.points, shift.detectable) == (0.5, 100.0, None)


def test_graded_scores_are_tested_as_passes_are() -> None:
    """Within what a permutation test of so many shuffles leaves open."""
    rng = np.random.default_rng(7)
    before = rng.binomial(1, 0.5, (30, 6)).astype(float)
    after = np.maximum(before, rng.random((30, 6)) < 0.15)
    exact = anchor_shift(before, after)
    graded = anchor_shift(before * 0.5, after * 0.5)  # of 0 and 1/2, and no pass or fail
    assert exact is not None
    assert graded is not None
    assert graded.p == pytest.approx(exact.p, abs=0.035)  # three standard errors
    assert graded.points == pytest.approx(exact.points / 2)


@given(
    st.lists(st.tuples(st.lists(MARKS, min_size=3, max_size=3), st.lists(MARKS, min_size=2, max_size=2)), max_size=6)
)
def test_a_shift_is_the_same_in_any_order_and_turns_with_its_sides(
    rows: list[tuple[list[float], list[float]]],
) -> None:
    before = np.array([row[0] for row in rows], np.float64).reshape(len(rows), 3)
    after = np.array([row[1] for row in rows], np.float64).reshape(len(rows), 2)
    shift = anchor_shift(before, after)
    assert anchor_shift(before[::-1, ::-1], after[::-1, ::-1]) == shift
    turned = anchor_shift(after, before)
    if shift is None:
        assert turned is None
        return
    assert turned is not None
    assert (turned.points, turned.p, turned.has_moved) == (-shift.points, shift.p, shift.has_moved)
    assert turned.interval == pytest.approx((-shift.interval[1], -shift.interval[0]))
    low, high = shift.interval
    assert low <= shift.points <= high
    assert shift.has_moved == (shift.p <= 0.01)
    assert shift.has_moved or low <= 0 <= high


def test_anchors_that_all_agree_still_leave_a_shift_open() -> None:
    shift = anchor_shift(np.ones((50, 5)), np.ones((50, 5)))
    assert shift is not None
    assert (shift.points, shift.p, shift.has_moved) == (0.0, 1.0, False)
    assert shift.interval[1] == pytest.approx(2.65, abs=0.01)
    assert shift.detectable == pytest.approx(7.1, abs=0.05)
    assert anchor_shift(np.full((3, 2), NAN), np.ones((3, 2))) is None


def test_planned_draws_grow_with_the_noise_and_never_pass_their_limits() -> None:
    assert plan_anchor_draws(None, 50) == 5
    planned = [plan_anchor_draws(noise_of(variance), 50) for variance in (0.0, 0.016, 0.05, 0.2)]
    assert planned == sorted(planned)
    assert (planned[0], planned[-1]) == (9, 40)
    assert plan_anchor_draws(noise_of(0.016), 200) == 5
    assert plan_anchor_draws(noise_of(0.016), 10) == 40


def test_the_judges_part_of_the_spread_is_at_most_the_whole() -> None:
    """Two cases of four flip between two repeats: a variance of 0.5 each, over four cases."""
    scores = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], np.float64)
    parts = split_judge_variance(scores, noise_of(0.1))
    assert parts is not None
    assert parts.total == pytest.approx(100 * np.sqrt(0.25 / 4))
    assert parts.judge == pytest.approx(100 * np.sqrt(0.1 / 4))
    assert parts.model**2 + parts.judge**2 == pytest.approx(parts.total**2)
    averaged = split_judge_variance(scores, noise_of(0.1), draws=5)
    assert averaged is not None
    assert averaged.judge == pytest.approx(parts.judge / np.sqrt(5))
    wild = split_judge_variance(scores, noise_of(0.5))
    assert wild is not None
    assert (wild.judge, wild.model) == (wild.total, 0.0)
    assert split_judge_variance(scores[:, :1], noise_of(0.1)) is None


def test_kappa_and_rates_are_those_of_the_table() -> None:
    judged = np.array([1.0] * 20 + [0.4] * 5 + [0.5] * 10 + [0.0] * 15 + [NAN])
    labels = np.array([1.0] * 25 + [0.0] * 25 + [1.0])
    found = agreement(judged, labels)
    assert found.n_labels == 50
    assert found.kappa == pytest.approx(0.4)
    assert (found.true_positive, found.false_positive) == (0.8, 0.4)
    assert found.true_positive_interval == (pytest.approx(0.593, abs=1e-3), pytest.approx(0.932, abs=1e-3))
    low, high = found.kappa_interval or (1, -1)
    assert (low, high) == (pytest.approx(0.14, abs=0.03), pytest.approx(0.63, abs=0.03))


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_without_two_words_there_is_no_kappa(label: float) -> None:
    found = agreement(np.full(5, label), np.full(5, label))
    assert (found.kappa, found.kappa_interval) == (None, None)
    rates = (found.true_positive, found.false_positive)
    assert rates == ((1.0, None) if label else (None, 0.0))
    assert agreement(np.array([1.0, NAN]), np.array([NAN, 1.0])).n_labels == 0


def test_a_judge_that_always_agrees_has_a_kappa_of_1_and_an_interval_below() -> None:
    found = agreement(np.array([1.0, 0.0] * 10), np.array([1.0, 0.0] * 10))
    assert found.kappa == 1
    low, high = found.kappa_interval or (1, 1)
    assert 0.6 < low < 0.95
    assert high == 1


def test_labels_correct_a_lenient_judge() -> None:
    """80 of 100 are judged right. Of 20 labelled of those, 15 are right; of 20 others 1 is."""
    judged = np.array([1.0] * 80 + [0.0] * 20)
    labels = np.full(100, NAN)
    labels[:20], labels[80:] = [1.0] * 15 + [0.0] * 5, [1.0] + [0.0] * 19
    found = corrected_rate(judged, labels)
    assert (found.n_answers, found.n_labels, found.raw) == (100, 40, 80.0)
    assert found.corrected == pytest.approx(80 * 0.75 + 20 * 0.05)
    low, high = found.interval or (0, 0)
    assert low < 61 < high < 80


def test_without_labels_nothing_is_corrected_and_with_all_nothing_is_open() -> None:
    judged, labels = np.array([1.0, 0.0, 1.0, NAN]), np.array([1.0, 0.0, 0.0, 1.0])
    none = corrected_rate(judged, np.full(4, NAN))
    assert (none.n_answers, none.n_labels, none.corrected, none.interval) == (3, 0, None, None)
    every = corrected_rate(judged, labels)
    assert every.corrected == pytest.approx(100 / 3)
    assert every.interval == pytest.approx((100 / 3, 100 / 3))
    assert corrected_rate(np.array([]), np.array([])).corrected is None


@given(st.lists(st.tuples(MARKS, PASSES), max_size=60))
def test_a_corrected_rate_is_the_same_in_any_order(rows: list[tuple[float, float]]) -> None:
    judged, labels = np.array(rows, np.float64).reshape(len(rows), 2).T
    found = corrected_rate(judged, labels)
    assert corrected_rate(judged[::-1], labels[::-1]) == found
    if found.corrected is not None:
        low, high = found.interval or (1, 0)
        assert 0 <= low <= found.corrected + 1e-9
        assert found.corrected - 1e-9 <= high <= 100


@pytest.mark.parametrize(
    "claims", group_by_promise(GRADED_FEW), ids=lambda claims: f"{claims[0].says}, {claims[0].aim}"
)
def test_a_promise_is_kept_in_a_few_of_each_situation(claims: tuple[JudgeClaim, ...]) -> None:
    assert_kept_in_few(claims, FEW)


@pytest.mark.nightly
@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.aim], ids=lambda claim: claim.situation)
def test_a_promised_rate_is_kept(claim: JudgeClaim) -> None:
    n = claim.n_in_tests
    n_errors = count_errors(claim, claim.measure(n), n)
    assert n_errors <= count_errors_allowed(n, promised_errors(claim), times_as_often=2.0), claim.aim


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.situation)
def test_the_page_has_the_promise_and_what_was_measured(claim: JudgeClaim) -> None:
    table = measured_table.table_of(PAGE.read_text(encoding="utf-8"), name="measured judges")
    [line] = [each for each in table.splitlines() if each.startswith(f"| {claim.situation} | {claim.says} | ")]
    assert claim.is_kept(float(line.split(" | ")[2].removesuffix(" %")) / 100)
    assert line.endswith(f" | {claim.n:,} | {claim.aim} |")


def test_the_simulated_judge_differs_as_often_as_is_said_and_the_exact_scorer_is_as_noisy() -> None:
    judged, exact = (next(judged_pairs(1, is_exact=is_exact)).baseline for is_exact in (False, True))
    assert judged.var(axis=1, ddof=1).mean() == pytest.approx(WILD / 2, abs=0.02)
    assert judged.var(axis=1, ddof=1).mean() == pytest.approx(exact.var(axis=1, ddof=1).mean(), abs=0.02)


@pytest.mark.parametrize("n", [12, pytest.param(200, marks=pytest.mark.nightly)])
def test_a_wild_judge_refuses_no_equal_run_and_decides_as_often_as_an_exact_scorer(n: int) -> None:
    """Within what so few pairs leave open: three standard errors."""
    by_judge, by_scorer = decide(n), decide(n, is_exact=True)
    assert by_judge.count("no_ship") <= count_errors_allowed(n, 0.01, times_as_often=2.0) + 1
    decided = [sum(each in ("ship", "no_ship") for each in verdicts) / n for verdicts in (by_judge, by_scorer)]
    assert decided[0] >= decided[1] - 3 * (0.5 / n) ** 0.5
    assert by_judge.count("ship") > n / 4


def test_a_judged_release_asks_for_new_runs_in_place_of_repeats() -> None:
    steps = [VerdictLine(code, {"repeats": 10}) for code in ("add_repeats", "settle_targeted")]
    assert next_steps.with_judge(steps, is_judged=False) == tuple(steps)
    [step] = next_steps.with_judge(steps, is_judged=True)
    assert STEPS.write(step.code, step.facts) == "Run both sides again with 10 repeats each."
    assert STEPS.write("add_repeats", {"repeats": 10}) == "Add repeats until each side has 10."


@pytest.mark.parametrize(("scores", "text"), [([np.nan, np.nan], "no response"), ([1.0, 1.0], "several buckets")])
def test_a_run_without_a_corrected_rate_says_why(scores: list[float], text: str) -> None:
    figures = agreement(np.array(scores), np.array([1.0, 0.0]))
    assert describe_rate(ScorerLabels.model_construct(agreement=figures, rate=None)).startswith(text)
