"""How numbers and lists of them are written: points, signs, intervals, shares, counts."""

import math
from collections.abc import Sequence
from decimal import Decimal
from string import ascii_uppercase

from evalboard.core.rounding import shown

MINUS = "−"
MAX_DIGITS = 3


def fixed(value: float, digits: int) -> str:
    """Write a number with so many decimals, "0.125"; a typographic minus, and never one before a zero.

    Every number that is shown with a fixed number of decimals is written here, so that all are rounded by one rule.
    """
    return f"{shown(value, digits):.{digits}f}".replace("-", MINUS)


def points(value: float, digits: int = 1) -> str:
    """Write a number of points, "80.2"."""
    return fixed(value, digits)


def signed(value: float, digits: int = 1) -> str:
    """Write a change in points: "+1.2", "−0.6", "0.0"."""
    text = points(value, digits)
    return text if text.startswith(MINUS) or float(text) == 0 else f"+{text}"


def interval(low: float, high: float, line: float | None = None) -> str:
    """Write an interval, "[−1.1, −0.1]"; with more decimals where an end would read like a line that it is not on."""
    return change_and_interval(low, low, high, line)[1]


def change_and_interval(change: float, low: float, high: float, line: float | None = None) -> tuple[str, str]:
    """Write a change and its interval with as many decimals, so that no change reads as if it lay outside."""
    digits = digits_beside((low, high), line)
    while digits < MAX_DIGITS and low < high and points(low, digits) == points(high, digits):
        digits += 1
    return signed(change, digits), f"[{signed(low, digits)}, {signed(high, digits)}]"


def score_range(low: float, high: float) -> str:
    """Write a range, "80.6 to 81.3 points"; one number where every repeat scored the same."""
    return f"{points(low)} points" if low == high else f"{points(low)} to {points(high)} points"


def limit(value: float) -> str:
    """Write a number that people chose: one decimal, or all that they gave."""
    return points(value) if shown(value) == value else f"{value:g}".replace("-", MINUS)


def percent(share: float, digits: int | None = None) -> str:
    """Write a share with at most one decimal, "94 %", "96.6 %", or with as many as `digits`."""
    return f"{shown(100 * share):g} %" if digits is None else f"{fixed(100 * share, digits)} %"


def percent_at_least(share: float) -> str:
    """Write a share rounded down to one decimal, so that nearly all is not called all: "99.9 %"."""
    return f"{math.floor(1000 * share + 1e-9) / 10:g} %"


def percent_rounded(share: float) -> str:
    """Write a share that is only known roughly with two digits: "0.74 %", "5.8 %", "13 %"."""
    return f"{100 * share:.2g} %"


def p_value(chance: float) -> str:
    """Write how likely chance is to give as much: "p = 0.031", "p < 0.001"."""
    return "p < 0.001" if chance < 0.001 else f"p = {fixed(chance, 3)}"


def nats(value: float) -> str:
    """Write a number of nats, "0.125 nats"; three digits of a small one."""
    return f"{fixed(value, 3)} nats" if abs(value) >= 0.01 else nats_rounded(value, 3)


def nats_rounded(value: float, digits: int = 2) -> str:
    """Write a number of nats with so many digits and no exponent: "0.047 nats", "0.0000035 nats"."""
    return f"{rounded(value, digits)} nats"


def rounded(value: float, digits: int = 2) -> str:
    """Write a number with so many digits and no exponent: "0.047", "−0.0000035"."""
    return f"{Decimal(f'{value:.{digits}g}'):f}".replace("-", MINUS)


def counted(n: int, noun: str) -> str:
    """Write a count with its noun: "1 case", "3,200 cases"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def about(n: float) -> str:
    """Write an expected number of things: "about 3", "fewer than one"."""
    return "fewer than one" if n < 0.95 else f"about {n:,.0f}"


def listed(parts: Sequence[str], last: str = "and") -> str:
    """Join parts as a sentence does: "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def capital(text: str) -> str:
    """Begin a text with a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def digits_beside(values: Sequence[float], line: float | None) -> int:
    """Count the decimals that keep a value from reading like a line that it is not on: one, or as many as it takes."""
    beside = [value for value in values if line is not None and value != line]
    for digits in range(1, MAX_DIGITS):
        if all(points(value, digits) != points(line or 0.0, digits) for value in beside):
            return digits
    return MAX_DIGITS


def letter(place: int) -> str:
    """Return what the bucket at a place from 0 is called beside others: A to Z, then A2 and so on."""
    again, at = divmod(place, len(ascii_uppercase))
    return ascii_uppercase[at] + (str(again + 1) if again else "")
