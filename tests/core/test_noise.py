"""Noise comes from flips within cases; missing stays apart, and order never counts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from evalboard.core import noise

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
    assert noise.n_unstable(scores) == 49


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
    assert noise.n_unstable(matrix) == n_unstable


@given(matrices, st.randoms(use_true_random=False))
def test_no_bit_depends_on_the_order_of_cases_or_repeats(scores: np.ndarray, random) -> None:
    cases, repeats = list(range(scores.shape[0])), list(range(scores.shape[1]))
    random.shuffle(cases)
    random.shuffle(repeats)
    shuffled = scores[cases][:, repeats]
    for measure in (noise.range_points, noise.disagreement_rate, noise.sd_points, noise.n_unstable):
        assert measure(shuffled) == measure(scores)


@given(matrices)
def test_noise_is_exactly_zero_where_no_case_is_unstable(scores: np.ndarray) -> None:
    rate = noise.disagreement_rate(scores)
    if rate is not None and noise.n_unstable(scores) == 0:
        assert rate == 0
