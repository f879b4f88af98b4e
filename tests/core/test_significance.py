"""Holm and Benjamini–Hochberg, by hand."""

import pytest

from evalboard.core.stats.significance import benjamini_hochberg, holm


@pytest.mark.parametrize(
    ("ratios", "n_asked", "stands"),
    [
        pytest.param([0.9], 1, [True], id="one-gate-is-itself"),
        pytest.param([0.4], 2, [True], id="half-of-the-limit-among-two"),
        pytest.param([0.6], 2, [False], id="more-than-half-among-two"),
        pytest.param([0.9, 0.3], 3, [False, True], id="the-second-has-two-left"),
        pytest.param([0.5, 0.3], 3, [True, True], id="the-second-has-two-left-and-stands"),
        pytest.param([0.3, 0.9, 0.4], 3, [True, True, True], id="the-last-has-one-left"),
        pytest.param([0.35, 0.1], 10, [False, True], id="the-first-that-falls-stops-the-rest"),
        pytest.param([], 3, [], id="none"),
    ],
)
def test_holm(ratios: list[float], n_asked: int, stands: list[bool]) -> None:
    assert holm(ratios, n_asked) == stands


@pytest.mark.parametrize(
    ("p_values", "found"),
    [
        pytest.param([0.09], [True], id="one"),
        pytest.param([0.11], [False], id="one-above"),
        pytest.param([0.5, 0.04, 0.09], [False, False, False], id="none-low-enough"),
        pytest.param([0.5, 0.03, 0.06], [False, True, True], id="the-second-lifts-itself"),
        pytest.param([0.06, 0.05, 0.09], [True, True, True], id="the-largest-lifts-all"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_benjamini_hochberg(p_values: list[float], found: list[bool]) -> None:
    assert benjamini_hochberg(p_values) == found


@pytest.mark.parametrize("n_others", [0, 1, 30])
def test_benjamini_hochberg_counts_tests_that_gave_1_without_being_handed_them(n_others: int) -> None:
    p_values = [0.03, 0.001, 0.2, 0.004]
    padded = benjamini_hochberg([*p_values, *[1.0] * n_others])
    assert benjamini_hochberg(p_values, n_tests=len(p_values) + n_others) == padded[: len(p_values)]
