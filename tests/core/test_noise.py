"""Noise comes from flips within cases; missing stays apart, and order never counts."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from evalboard.core.stats import noise

NAN = math.nan
matrices = arrays.arrays(
    np.float64,
    arrays.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.1, NAN]),
)


@pytest.mark.parametrize(
    ("scores", "points"),
    [
        pytest.param([1, 0, 1, 1], 75.0, id="pass-and-fail"),
        pytest.param([0.1] * 10, 10.0, id="graded"),
        pytest.param([0, 0], 0.0, id="zero-is-a-score"),
        pytest.param([1, NAN], None, id="missing-is-not-zero"),
        pytest.param([], None, id="no-case"),
    ],
)
def test_run_points(scores: list[float], points: float | None) -> None:
    assert noise.run_points(np.array(scores, dtype=np.float64)) == points


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        pytest.param([[1, 1, 0], [1, 0, 0]], (0.0, 100.0), id="three-repeats"),
        pytest.param([[1], [0]], (50.0, 50.0), id="one-repeat"),
        pytest.param([[1, 1], [1, NAN]], None, id="one-repeat-incomplete"),
        pytest.param(np.zeros((3, 0)), None, id="no-repeat"),
        pytest.param(np.zeros((0, 2)), None, id="no-case"),
    ],
)
def test_range_points(scores, expected: tuple[float, float] | None) -> None:
    assert noise.range_points(np.array(scores, dtype=np.float64)) == expected


def test_disagreement_is_the_share_of_pairs_of_repeats_that_differ() -> None:
    rng = np.random.default_rng(5)
    scores = (rng.random((50, 5)) < rng.random((50, 1))).astype(np.float64)
    pairs = [(scores[:, i] != scores[:, j]).mean() for i in range(5) for j in range(i)]
    assert noise.disagreement_rate(scores) == pytest.approx(np.mean(pairs))


def test_49_flipping_cases_of_800_move_a_run_by_half_a_point() -> None:
    unstable = np.array([[1.0, 0.0, 1.0, 0.0, 1.0]] * 49)  # variance 0.3 each
    scores = np.vstack([unstable, np.ones((751, 5))])
    assert noise.sd_points(scores) == pytest.approx(100 * math.sqrt(49 * 0.3) / 800)
    assert noise.sd_points(scores) == pytest.approx(0.48, abs=0.005)
    assert noise.count_unstable(scores) == 49


def test_the_sd_foretells_how_run_scores_scatter() -> None:
    """Seeded simulation: over 2,000 repeats the run scores' own SD agrees with the one from flips."""
    rng = np.random.default_rng(20261121)
    chance = np.where(rng.random(200) < 0.15, rng.random(200), 1.0)
    scores = (rng.random((200, 2000)) < chance[:, None]).astype(np.float64)
    assert noise.sd_points(scores) == pytest.approx(100 * scores.mean(axis=0).std(ddof=1), rel=0.05)


@pytest.mark.parametrize(
    ("scores", "rate", "sd", "n_unstable"),
    [
        pytest.param([[1, 1], [0, 0]], 0.0, 0.0, 0, id="stable"),
        pytest.param([[0.1, 0.1, 0.1], [0.7, 0.7, 0.7]], 0.0, 0.0, 0, id="graded-and-stable-is-exactly-0"),
        pytest.param([[1, 0], [1, 1]], 0.5, 100 * math.sqrt(0.125), 1, id="one-of-two-flips"),
        pytest.param([[1, 0, NAN], [1, 1, 1]], 0.5, 100 * math.sqrt(0.125), 1, id="uses-the-scores-there-are"),
        pytest.param([[1, 0], [1, NAN]], 1.0, 50.0, 1, id="a-case-with-one-score-says-nothing"),
        pytest.param([[1, 0], [NAN, NAN]], 1.0, 50.0, 1, id="a-missing-case-is-not-stable"),
        pytest.param([[1], [0]], None, None, 0, id="one-repeat-measures-nothing"),
        pytest.param([[NAN, NAN]], None, None, 0, id="all-missing"),
        pytest.param(np.zeros((0, 5)), None, None, 0, id="no-case"),
        pytest.param(np.zeros((3, 0)), None, None, 0, id="no-repeat"),
    ],
)
def test_noise(scores, rate: float | None, sd: float | None, n_unstable: int) -> None:
    matrix = np.array(scores, dtype=np.float64)
    assert noise.disagreement_rate(matrix) == pytest.approx(rate)
    assert noise.sd_points(matrix) == pytest.approx(sd)
    assert noise.count_unstable(matrix) == n_unstable


@given(matrices, st.randoms(use_true_random=False))
def test_no_bit_depends_on_the_order_of_cases_or_repeats(scores: np.ndarray, random) -> None:
    cases, repeats = list(range(scores.shape[0])), list(range(scores.shape[1]))
    random.shuffle(cases)
    random.shuffle(repeats)
    shuffled = scores[cases][:, repeats]
    measures = (
        noise.range_points,
        noise.disagreement_rate,
        noise.sd_points,
        noise.count_unstable,
        noise.flip_variance,
        noise.score_points,
        noise.measurement_interval,
        noise.reach_interval,
        noise.range5,
        noise.overdispersion,
    )
    for measure in measures:
        assert measure(shuffled) == measure(scores)
        assert measure(np.asfortranarray(shuffled)) == measure(scores)  # nor on how they lie in memory


@given(matrices)
def test_noise_is_exactly_zero_where_no_case_is_unstable(scores: np.ndarray) -> None:
    rate = noise.disagreement_rate(scores)
    if rate is not None and noise.count_unstable(scores) == 0:
        assert rate == 0


def made(n_cases: int, counts: list[int]) -> np.ndarray:
    """Repeats of pass and fail in which so many of the cases pass."""
    return np.column_stack([np.arange(n_cases) < count for count in counts]).astype(np.float64)


@pytest.mark.parametrize("k", [1, 5, 20])
def test_a_case_of_many_has_to_the_bit_the_variance_that_it_has_alone(k: int) -> None:
    """Pass and fail on many cases are read from a table."""
    rng = np.random.default_rng(k)
    scores = (rng.random((100, k)) < rng.random((100, 1))).astype(np.float64)
    alone = np.concatenate([noise.within_case_variances(case[None]) for case in scores])
    np.testing.assert_array_equal(noise.within_case_variances(scores), alone)
    if k > 1:
        assert alone == pytest.approx(scores.var(axis=1, ddof=1))
    np.testing.assert_array_equal(noise.average_cases(scores), scores.sum(axis=1) / k)


def test_zero_flips_seen_are_not_zero_noise() -> None:
    assert noise.flip_variance(np.ones((800, 5))) == pytest.approx(0.6 / 800**2)
    assert noise.flip_variance(np.array([[1.0, 0.0], [1.0, 1.0]])) == pytest.approx(1.5 / 4)  # 3/k is more than 0.5
    assert noise.flip_variance(np.ones((800, 1))) is None


def test_the_measurement_interval_of_a_noisy_bucket_is_a_third_of_a_point_wide_on_each_side() -> None:
    """The example of docs/verdict.md: 800 cases, a standard deviation of 0.48 points, 5 repeats."""
    scores = np.vstack([np.array([[1.0, 0.0, 1.0, 0.0, 1.0]] * 49), made(751, [615] * 5)])
    low, high = noise.measurement_interval(scores) or (0, 0)
    score = noise.score_points(scores)
    assert score == pytest.approx(80.55)
    assert (low + high) / 2 == pytest.approx(score)
    assert high - low == pytest.approx(2 * 0.35, abs=0.01)


def test_a_measurement_interval_stays_within_0_and_100() -> None:
    assert noise.measurement_interval(np.ones((10, 5)))[1] == 100
    assert noise.measurement_interval(np.zeros((10, 5)))[0] == 0


def test_the_measurement_interval_covers_the_true_score_9_times_in_10() -> None:
    rng = np.random.default_rng(20261121)
    covered = 0
    for _ in range(400):
        chance = np.where(rng.random(300) < 0.11, rng.random(300), rng.random(300) < 0.8)
        low, high = noise.measurement_interval((rng.random((300, 5)) < chance[:, None]).astype(np.float64))
        covered += low <= 100 * chance.mean() <= high
    assert 0.87 <= covered / 400 <= 0.95


def test_the_reach_interval_is_wilsons() -> None:
    """644 of 800: 78.1 to 82.7 at 90 %, as statsmodels' proportion_confint gives with n − 1."""
    assert noise.reach_interval(made(800, [644])) == pytest.approx((78.1, 82.7), abs=0.05)


@pytest.mark.parametrize("n", [1, 30, 800])
def test_where_all_pass_or_all_fail_the_reach_is_clopper_and_pearsons(n: int) -> None:
    bound = 100 * 0.05 ** (1 / n)
    assert noise.reach_interval(np.ones((n, 3))) == pytest.approx((bound, 100))
    assert noise.reach_interval(np.zeros((n, 3))) == pytest.approx((0, 100 - bound))


def test_one_case_that_wavers_makes_no_surer_than_none() -> None:
    wavering = np.ones((800, 5))
    wavering[0, 0] = 0
    assert noise.reach_interval(wavering)[0] <= noise.reach_interval(np.ones((800, 5)))[0]


def test_equal_graded_scores_do_not_make_other_cases_equal() -> None:
    low, high = noise.reach_interval(np.full((30, 2), 0.5))
    assert low < 48 < 52 < high


def test_ten_alike_cases_of_a_group_say_as_much_as_one() -> None:
    grouped, groups = np.repeat(made(10, [5]), 10, axis=0), [f"group {index}" for index in range(10) for _ in range(10)]
    assert noise.reach_interval(grouped, groups) == pytest.approx(noise.reach_interval(made(10, [5])))
    every = noise.reach_interval(np.ones((100, 2)), groups)
    assert every == pytest.approx(noise.reach_interval(np.ones((10, 2))))


def test_a_missing_score_leaves_no_reach() -> None:
    assert noise.reach_interval(np.array([[1.0, 0.0], [NAN, NAN]])) is None
    assert noise.reach_interval(np.array([[1.0, NAN], [0.0, 0.0]])) is not None


@pytest.mark.parametrize("k", [6, 9])
def test_the_range_of_5_is_the_mean_over_all_choices_of_5(k: int) -> None:
    rng = np.random.default_rng(k)
    counts = rng.integers(600, 700, k).tolist()
    chosen = [max(five) - min(five) for five in itertools.combinations(counts, 5)]
    assert noise.range5_points(made(800, counts)) == pytest.approx(100 * np.mean(chosen) / 800)


@pytest.mark.parametrize(
    ("counts", "is_over"),
    [
        pytest.param([640, 648, 644, 644, 644], False, id="8-of-800-is-1-point-and-not-more"),
        pytest.param([640, 649, 644, 644, 644], True, id="9-of-800"),
        pytest.param([640] * 5 + [648] * 5, False, id="ten-repeats-below-by-two-in-252"),
        pytest.param([640, 648], False, id="the-plain-range-of-two"),
        pytest.param([640, 649], True, id="two-over"),
    ],
)
def test_a_range_of_exactly_1_point_is_not_over_it(counts: list[int], is_over: bool) -> None:
    assert noise.is_range5_over(made(800, counts), 1.0) is is_over


def test_at_a_tenth_of_a_point_no_rounding_decides() -> None:
    assert noise.is_range5_over(made(1000, [700, 701]), 0.1) is False
    assert noise.is_range5_over(made(1000, [700, 702]), 0.1) is True


def test_the_range_of_5_needs_every_repeat_whole() -> None:
    assert noise.range5_points(np.array([[1.0, NAN]])) is None
    assert noise.is_range5_over(np.zeros((3, 0)), 1.0) is None


def test_the_range_of_5_does_not_grow_with_the_repeats() -> None:
    rng = np.random.default_rng(20261121)
    chance = np.where(rng.random(800) < 0.112, rng.random(800), 1.0)
    scores = (rng.random((800, 200)) < chance[:, None]).astype(np.float64)
    expected = noise.expected_range_points(noise.sd_points(scores))
    assert noise.range5_points(scores) == pytest.approx(expected, rel=0.1)
    assert noise.expected_range_points(1.0, 10) == 3.078


def test_repeats_that_flip_case_by_case_are_rarely_called_overdispersed() -> None:
    rng = np.random.default_rng(20261121)
    chance = np.where(rng.random(800) < 0.112, rng.random(800), 1.0)
    found = [noise.overdispersion((rng.random((800, 5)) < chance[:, None]).astype(np.float64)) for _ in range(300)]
    chances = np.array(found)
    assert 0.01 <= np.mean(chances < 0.05) <= 0.08
    assert np.mean(chances < noise.OVERDISPERSED_BELOW) <= 0.015


def test_repeats_that_move_as_a_whole_are_called_overdispersed() -> None:
    scores = np.vstack([made(700, [650, 670, 640, 690, 610]), np.array([[1.0, 0.0, 1.0, 0.0, 1.0]] * 10)])
    assert noise.overdispersion(scores) < 1e-6
    assert noise.overdispersion(scores, np.ones((700, 5))) < 1e-6  # both sides together


def test_equal_repeats_are_as_likely_as_any() -> None:
    assert noise.overdispersion(np.ones((800, 5))) == 1
    assert noise.overdispersion(np.ones((800, 1))) is None
    assert noise.overdispersion(np.array([[1.0, NAN], [1.0, 0.0]])) is None


@pytest.mark.parametrize(("repeats", "alpha", "points"), [(5, 0.03, 0.82), (10, 0.01, 0.68), (20, 0.01, 0.48)])
def test_resolution_is_that_of_the_table(repeats: int, alpha: float, points: float) -> None:
    scores = np.vstack([np.array([[1.0, 0.0, 1.0, 0.0, 1.0]] * 49), np.ones((751, 5))])
    assert noise.resolution_points(scores, repeats=repeats, alpha=alpha) == pytest.approx(points, abs=0.01)


def test_resolution_elsewhere_is_a_matter_of_cases() -> None:
    pinned = np.ones((800, 5))
    assert noise.resolution_elsewhere_points(pinned, repeats=5) == pytest.approx(2.2, abs=0.06)
    assert noise.resolution_elsewhere_points(pinned, repeats=20, churn=0.12) == pytest.approx(3.0, abs=0.06)
    assert noise.resolution_elsewhere_points(np.ones((800, 1)), repeats=5) is None


def test_agreement_counts_cases_of_which_every_repeat_is_the_same() -> None:
    assert noise.measure_agreement(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.5, 0.5]])) == 0.75
    digests = np.array([[[1, 2], [1, 2]], [[1, 2], [1, 3]]], dtype=np.uint8)
    assert noise.measure_agreement(digests) == 0.5
    assert noise.measure_agreement(digests[:, :1]) is None
    assert noise.measure_agreement(digests[:0]) is None
