"""Numbers that people read: one rule of rounding, for all."""

import math
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.rounding import shown
from evalboard.core.stats import average_points, difference_points
from evalboard.wording.numbers import MINUS, OTHER_ANSWERS, ROUNDED, fixed, points, rounded, scores_beside, signed


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (2.15, 1, 2.2),  # in binary a hair under the half
        (-2.15, 1, -2.2),
        (100 * 0.8125 - 100 * 0.834, 1, -2.2),  # a half that a subtraction missed
        (0.25, 1, 0.3),
        (-0.25, 1, -0.3),
        (0.05, 1, 0.1),
        (0.04, 1, 0.0),
        (80.0, 1, 80.0),
        (1.005, 2, 1.01),
        (2.5, 0, 3.0),
    ],
)
def test_halves_go_away_from_zero(value: float, digits: int, expected: float) -> None:
    assert shown(value, digits) == expected


def test_no_zero_has_a_sign() -> None:
    assert math.copysign(1, shown(-0.04)) == 1
    assert (points(-0.04), signed(-0.04), signed(0.04)) == ("0.0", "0.0", "0.0")


@given(st.integers(1, 4096), st.floats(-100, 100), st.integers(1, 3))
def test_it_is_the_rounding_of_the_exact_number(denominator: int, size: float, digits: int) -> None:
    numerator = int(size * denominator)
    exact = Decimal(numerator) / Decimal(denominator)
    expected = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    assert float(expected) == shown(numerator / denominator, digits)
    assert fixed(-numerator / denominator, digits).strip("−") == fixed(numerator / denominator, digits).strip("−")


def test_no_pair_of_scores_contradicts_its_change() -> None:
    """Over 5,000 pairs of runs: one text per change, and scores that differ by it, or are said to be rounded."""
    rng, notes = np.random.default_rng(7), Counter[str]()
    texts: dict[float, set[str]] = {}
    for _ in range(5_000):
        n, k, k_too = int(rng.integers(10, 400)), *rng.choice([1, 2, 3, 5, 8], 2).tolist()
        passed, passed_too = rng.integers(0, k + 1, n), rng.integers(0, k_too + 1, n)
        ours, theirs = ((np.arange(m) < each[:, None]) * 1.0 for m, each in ((k, passed), (k_too, passed_too)))
        change = difference_points(ours, theirs)
        score, score_too = average_points(ours), average_points(theirs)
        beside, text = scores_beside(score, score_too, change), signed(change)
        texts.setdefault(round(change, 9), set()).update((text, signed(score_too - score)))
        notes[beside.note] += 1
        differ = signed(_number(beside.candidate) - _number(beside.baseline))
        assert beside.note == ROUNDED or differ == text, (beside, text)
        assert abs(_number(beside.candidate) - score_too) <= 0.05 + 1e-9
    assert {len(each) for each in texts.values()} == {1}
    assert 0 < notes[ROUNDED] < 150, notes


def _number(text: str) -> float:
    return float(text.replace(MINUS, "-"))


@pytest.mark.parametrize(
    ("sides", "change", "digits", "expected"),
    [
        ((80.0, 78.0), -2.0, 1, ("80.0", "78.0", "")),
        ((80.25, 78.1), -2.15, 1, ("80.3", "78.1", "")),
        ((80.24, 78.12), -2.12, 1, ("80.2", "78.1", "")),
        ((80.26, 78.12), -2.14, 1, ("80.26", "78.12", "")),  # 80.3 and 78.1 would differ by 2.2
        ((200 / 3, 100 / 3), -100 / 3, 1, ("66.67", "33.33", "")),
        ((80.0, 79.0), -1.4, 1, ("80.0", "79.0", OTHER_ANSWERS)),
        ((80.0, None), None, 1, ("80.0", "–", "")),
    ],
)
def test_scores_take_the_decimals_with_which_they_differ_by_the_change(
    sides: tuple[float | None, float | None], change: float | None, digits: int, expected: tuple[str, str, str]
) -> None:
    assert scores_beside(*sides, change, digits)[:3] == expected


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (0.125, 2, "0.13"),  # as three decimals cut to two
        (-0.0455, 2, "−0.046"),
        (12.5, 2, "13"),
        (0.0000035, 2, "0.0000035"),
        (0.996, 2, "1"),
        (125.0, 2, "130"),
        (0.0, 2, "0"),
    ],
)
def test_so_many_digits_are_rounded_by_the_same_rule(value: float, digits: int, expected: str) -> None:
    assert rounded(value, digits) == expected
