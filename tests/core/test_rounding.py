"""Numbers that people read: one rule of rounding, for all."""

import math
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.rounding import shown
from evalboard.wording.numbers import fixed, points, signed


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
