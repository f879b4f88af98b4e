"""The difference of two sides and its noise, by hand."""

import math

import numpy as np
import pytest

from evalboard.core.stats import paired
from evalboard.core.stats.quantiles import normal_quantile, student_quantile
from tests.core.questions import runs

NAN = math.nan


def arrays(baseline: list[list[float]], candidate: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(baseline, dtype=np.float64), np.array(candidate, dtype=np.float64)


def test_nothing_seen_to_move_is_not_nothing() -> None:
    """30 cases, 5 equal repeats: each side's one-run variance is 3/5 / 30²."""
    same = runs(20, 20, 20, 20, 20, n_cases=30)
    found = paired.estimate_difference(same, same)
    assert (found.difference, found.method, found.df) == (0.0, "flips", None)
    assert found.se == pytest.approx(100 * math.sqrt(2 * 0.6 / 5) / 30)
    assert found.half_width(0.03) == pytest.approx(normal_quantile(0.97) * found.se)
    assert found.half_width(0.03) == pytest.approx(3.07, abs=0.01)


def test_flips_within_cases_make_the_standard_error() -> None:
    """8 cases at 3 of 5 on one side (variance 0.3 each), none on the other: (2.4 / 5 + 0.6 / 5) / n²."""
    steady = np.ones((100, 5))
    moving = steady.copy()
    for case in range(8):  # shifted so that run scores stay close to each other
        moving[case, [case % 5, (case + 1) % 5]] = 0
    found = paired.estimate_difference(steady, moving)
    assert found.difference == -100 * 8 * 0.4 / 100
    assert paired.se_flips(paired.measure_noise(steady, moving)) == pytest.approx(math.sqrt(2.4 / 5 + 0.6 / 5))
    assert found.method == "flips"


def test_runs_that_move_as_a_whole_are_judged_by_runs() -> None:
    """Run scores 60, 70, 80 (variance 100) against 70, 70, 70, each case that moved doing so with the others."""
    found = paired.estimate_difference(runs(70, 70, 70, n_cases=100), runs(60, 70, 80, n_cases=100))
    assert (found.method, found.df) == ("runs", 4)
    assert found.se == pytest.approx(math.sqrt(100 / 3))
    assert found.half_width(0.03) == pytest.approx(student_quantile(0.97, 4) * found.se)
    assert found.difference == 0.0


def test_a_little_more_scatter_than_flips_explain_is_kept_without_another_distribution() -> None:
    ours = runs(70, 70, 70, 70, 70, n_cases=100)
    theirs = ours.copy()
    for case, repeat in enumerate([0, 0, 0, 0, 1, 2]):
        theirs[case, repeat] = 0
    measured = paired.measure_noise(ours, theirs)
    flips, whole_runs = paired.se_flips(measured), paired.se_runs(measured)
    assert whole_runs is not None
    assert flips < whole_runs < 1.25 * flips
    found = paired.estimate_difference(ours, theirs)
    assert (found.se, found.method, found.df) == (whole_runs, "flips", None)


def test_one_repeat_borrows_the_noise_of_the_other_side() -> None:
    """Σ s² = 10 · 0.3 = 3 over five repeats; the single one is taken to be 1.25 times as noisy."""
    baseline = np.ones((100, 5))
    baseline[:10] = [1, 0, 1, 0, 1]
    candidate = np.ones((100, 1))
    found = paired.estimate_difference(baseline, candidate)
    assert found.se == pytest.approx(math.sqrt(3 / 5 + 1.25 * 3))
    mirrored = paired.estimate_difference(candidate, baseline)
    assert (mirrored.se, mirrored.difference) == (found.se, -found.difference)


def test_with_one_repeat_on_both_sides_every_change_may_be_chance() -> None:
    """20 cases of 800 differ: the error is as if all of them had moved by chance."""
    candidate = runs(651, n_cases=800)
    candidate[:17], candidate[700:703] = 0, 1
    found = paired.estimate_difference(runs(651, n_cases=800), candidate)
    assert found.difference == -100 * 14 / 800
    assert found.se == pytest.approx(100 * math.sqrt(20) / 800)
    assert found.method is None
    same = paired.estimate_difference(runs(651, n_cases=800), runs(651, n_cases=800))
    assert same.se == pytest.approx(100 * math.sqrt(3) / 800)


def test_pass_and_fail_cancel_exactly() -> None:
    """0.6 − 0.4 and 0.0 − 0.2 are not each other's opposites in binary; counts are."""
    ours, theirs = arrays(
        [[1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 1, NAN, NAN]],
        [[1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 1, 0, NAN, NAN]],
    )
    assert paired.difference_points(ours, theirs) == 0.0
    assert paired.difference_points(*arrays([[1, NAN], [1, 1]], [[0, 1], [1, NAN]])) == -25.0


def test_graded_scores_use_the_same_formulas() -> None:
    ours, theirs = arrays([[0.5, 0.7], [0.2, 0.2]], [[0.9, 0.9], [0.2, 0.2]])
    assert paired.difference_points(ours, theirs) == pytest.approx(15.0)
    assert paired.average_points(ours) == pytest.approx(40.0)
    measured = paired.measure_noise(ours, theirs)
    assert measured.flips_baseline == pytest.approx(0.02)
    assert measured.flips_candidate == 0.0


@pytest.mark.parametrize("constant", [0.1, 0.3, 1.0])
def test_a_case_that_never_moves_adds_nothing_whatever_its_score(constant: float) -> None:
    rng = np.random.default_rng(3)
    ours, theirs = rng.random((2, 40, 5))
    ours[0] = theirs[0] = 0.0
    before = paired.estimate_difference(ours, theirs)
    ours[0] = theirs[0] = constant
    assert paired.estimate_difference(ours, theirs) == before


def test_more_repeats_shrink_what_was_seen_and_what_was_not() -> None:
    same = runs(20, 20, 20, 20, 20, n_cases=30)
    later = paired.scale_noise(paired.measure_noise(same, same), 20)
    assert paired.se_flips(later) == pytest.approx(100 * math.sqrt(2 * (3 / 20) / 20) / 30)
    moving = same.copy()
    moving[:10, 0] = 0  # variance 0.2 each, all in one run
    measured = paired.measure_noise(same, moving)
    assert paired.se_flips(paired.scale_noise(measured, 10)) == pytest.approx(100 * math.sqrt((2 + 0.3) / 10) / 30)
    now, then = paired.se_runs(measured), paired.se_runs(paired.scale_noise(measured, 20))
    assert now is not None
    assert then == pytest.approx(now / 2)


def test_the_resolution_of_800_cases_batched_is_that_of_the_table() -> None:
    """One-run SD 0.48 points: 0.82 points at 5 repeats a side, and 0.48 at 20 with the later looks' level."""
    batched = np.ones((800, 5))
    batched[:49] = [1, 0, 1, 0, 1]
    measured = paired.measure_noise(batched, batched)
    assert paired.paired_resolution_points(measured, 0.03) == pytest.approx(0.82, abs=0.01)
    assert paired.paired_resolution_points(paired.scale_noise(measured, 20), 0.01) == pytest.approx(0.48, abs=0.01)


def test_whole_cases_are_those_that_every_repeat_has() -> None:
    ours, _ = arrays([[1, NAN], [0, 1]], [[1, 1], [1, 1]])
    assert paired.select_whole_cases(ours).tolist() == [[0, 1]]
    assert paired.measure_noise(*arrays([[1, NAN]], [[1, 1]])).runs_baseline is None


def test_missing_scores_weigh_the_same_to_the_bit_in_whatever_order_the_cases_stand() -> None:
    rng = np.random.default_rng(2)  # whose sum of counts does depend on the order
    scores = np.where(rng.random((120, 10)) < 0.03, NAN, rng.integers(0, 2, (120, 10)))
    there = paired.measure_noise(scores, scores)
    back = paired.measure_noise(scores[::-1], scores[::-1])
    shuffled = rng.permutation(scores)
    assert there == back == paired.measure_noise(shuffled, shuffled)
