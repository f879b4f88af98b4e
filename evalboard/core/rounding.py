"""The one rule by which a number that people read is rounded."""

import math
from decimal import ROUND_HALF_UP, Decimal

# What a sum of floats may fall short of an exact half, in units of the last decimal shown.
SLACK = 1e-9
WHOLE = 2.0**53  # the least from which every float is a whole number


def shown_amount(value: Decimal) -> Decimal:
    """Round an amount of money to cents, or to two digits if it is smaller; halves away from zero."""
    return value.quantize(Decimal(1).scaleb(min(-2, value.adjusted() - 1)), ROUND_HALF_UP)


def shown(value: float, digits: int = 1) -> float:
    """Round a number to so many decimals, halves away from zero: 2.15 is 2.2, and −2.15 is −2.2.

    Return sign(value)·⌊|value|·10^digits + ½ + SLACK⌋ / 10^digits, never a negative zero. A change and its opposite
    have the same digits, and a half that a sum of floats missed by a hair is a half. A float from 2**53 on has no
    decimals. Raises ValueError or OverflowError where `value` is not finite.
    """
    if WHOLE <= abs(value) < math.inf:
        return value
    scale = 10.0**digits
    size = math.floor(abs(value) * scale + 0.5 + SLACK) / scale
    return -size if value < 0 and size else size
