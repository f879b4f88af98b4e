"""How numbers and lists of them are written: points, signs, intervals, shares, counts."""

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from string import ascii_uppercase
from typing import NamedTuple

from evalboard.core.rounding import shown, shown_amount

MINUS = "−"
MAX_DIGITS = 3
MAX_APART = 3  # scores of buckets in a row
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def fixed(value: float, digits: int) -> str:
    """Write a number with so many decimals, "0.125"; a typographic minus, and never one before a zero.

    Every number that is shown with a fixed number of decimals is written here, so that all are rounded by one rule.
    """
    return f"{shown(value, digits):.{digits}f}".replace("-", MINUS)


def points(value: float, digits: int = 1) -> str:
    """Write a number of points, "80.2"."""
    return fixed(value, digits)


def money(amount: str, currency: str) -> str:
    """Write an amount of money: "12.35 USD", "0.0042 USD"."""
    return f"{shown_amount(Decimal(amount)):,f} {currency}"


def signed(value: float, digits: int = 1) -> str:
    """Write a change in points: "+1.2", "−0.6", "0.0"."""
    text = points(value, digits)
    return text if text.startswith(MINUS) or float(text) == 0 else f"+{text}"


def small_points(value: float) -> str:
    """Write points that may be small: one decimal, or as many as its first digit needs."""
    for digits in range(1, MAX_DIGITS + 1):
        if shown(value, digits) or not value:
            return points(value, digits)
    return f"{value:.1g}"


def spread(value: float | None) -> str:
    """Write how far repeats spread around a score, "± 0.4"; "" where it is not known or none was seen."""
    return f"± {small_points(value)}" if value else ""


ROUNDED = "(rounded)"
OTHER_ANSWERS = "(over other answers)"  # such as the targeted repeats that enter a change alone
SAME_POINTS = 1e-6


class ShownScores(NamedTuple):
    """Two scores written next to their change. note: why they do not differ by it, "" if they do."""

    baseline: str
    candidate: str
    note: str
    digits: int


def scores_beside(
    baseline: float | None, candidate: float | None, change: float | None, digits: int = 1
) -> ShownScores:
    """Write two scores so that they differ by their change as written with `digits` decimals.

    The scores have one decimal, or two if only those differ by the change. Some never do, such as exact thirds: they
    have one decimal and the note "(rounded)". A score that is not known is "–".
    """
    n, note = score_digits([(baseline, candidate, change)], digits)
    ours, theirs = ("–" if score is None else points(score, n) for score in (baseline, candidate))
    return ShownScores(ours, theirs, note, n)


def score_digits(
    changes: Iterable[tuple[float | None, float | None, float | None]], digits: int = 1
) -> tuple[int, str]:
    """Return the decimals at which scores differ by their changes; one and a note if 1 and 2 do not.

    changes: (baseline, candidate, change) of each pair that is written together, its change with so many decimals.
    """
    known = [
        (ours, theirs, change)
        for ours, theirs, change in changes
        if ours is not None and theirs is not None and change is not None
    ]
    for n in (1, 2):
        if all(_agree(*each, n, min(n, digits)) for each in known):
            return n, ""
    is_exact = all(abs(theirs - ours - change) < SAME_POINTS for ours, theirs, change in known)
    return 1, ROUNDED if is_exact else OTHER_ANSWERS


def _agree(baseline: float, candidate: float, change: float, n: int, digits: int) -> bool:
    """Return whether scores with n decimals differ by the change, at so many decimals."""
    return shown(shown(candidate, n) - shown(baseline, n), digits) == shown(change, digits)


def interval(low: float, high: float, line: float | None = None) -> str:
    """Write an interval, "[−1.1, −0.1]", with more decimals if an end would otherwise read as `line`."""
    return change_and_interval(low, low, high, line)[1]


def change_and_interval(change: float, low: float, high: float, line: float | None = None) -> tuple[str, str]:
    """Write a change and its interval with as many decimals, so that no change reads as if it lay outside."""
    digits = interval_digits(low, high, line)
    return signed(change, digits), f"[{signed(low, digits)}, {signed(high, digits)}]"


def interval_digits(low: float, high: float, line: float | None = None) -> int:
    """Count the decimals that keep an interval's ends distinct, from each other and from the line."""
    digits = digits_beside((low, high), line)
    while digits < MAX_DIGITS and low < high and points(low, digits) == points(high, digits):
        digits += 1
    return digits


def score_range(low: float, high: float) -> str:
    """Write a range, "80.6 to 81.3 points"; one number where every repeat scored the same."""
    return f"{points(low)} points" if low == high else f"{points(low)} to {points(high)} points"


def scores_apart(scores: Sequence[float | None], names: Sequence[str] = ()) -> str:
    """Write the scores of several buckets: "66.7 / 55.9", or with their names "A 66.7 / B 55.9"."""
    texts = ["–" if score is None else points(score) for score in scores[:MAX_APART]]
    shown = [f"{name} {text}" for name, text in zip(names, texts, strict=False)] or texts
    return " / ".join([*shown, *(["…"] if len(scores) > MAX_APART else [])])


def limit(value: float) -> str:
    """Write a number that people chose: one decimal, or all that they gave."""
    return points(value) if shown(value) == value else f"{value:g}".replace("-", MINUS)


def percent(share: float, digits: int | None = None) -> str:
    """Write a share with at most one decimal, "94 %", "96.6 %", or with exactly `digits`."""
    return f"{shown(100 * share):g} %" if digits is None else f"{fixed(100 * share, digits)} %"


def percent_at_least(share: float) -> str:
    """Write a share rounded down to one decimal, so that nearly all is not called all: "99.9 %"."""
    return f"{math.floor(1000 * share + 1e-9) / 10:g} %"


def percent_rounded(share: float) -> str:
    """Write a share that is only known roughly with two digits: "0.74 %", "5.8 %", "13 %"."""
    return f"{rounded(100 * share)} %"


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
    places = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{Decimal(f'{shown(value, places):.{digits}g}'):f}".replace("-", MINUS)


def counted(n: int, noun: str) -> str:
    """Write a count with its noun: "1 case", "3,200 cases"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def count_samples(n_draws: float) -> str:
    """Write how many independent samples repeats are: "one sample", "2.4 samples"."""
    return "one sample" if n_draws == 1 else f"{fixed(n_draws, 1)} samples"


def in_words(n: int, one: str = "one") -> str:
    """Write a small count as a word: "no", "two", "12". one: how a single one is written, such as "an"."""
    return one if n == 1 else WORDS[n] if n < len(WORDS) else f"{n:,}"


def about(n: float) -> str:
    """Write an expected number of things: "about 3", "about 0.4", "fewer than 0.1"."""
    return "fewer than 0.1" if n < 0.05 else f"about {fixed(n, 1)}" if n < 0.95 else f"about {n:,.0f}"


def listed(parts: Sequence[str], last: str = "and") -> str:
    """Join parts as a sentence does: "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def capital(text: str) -> str:
    """Begin a text with a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def digits_beside(values: Sequence[float], line: float | None) -> int:
    """Count the decimals that keep values from reading as `line` if they do not equal it; at least one."""
    beside = [value for value in values if line is not None and value != line]
    for digits in range(1, MAX_DIGITS):
        if all(points(value, digits) != points(line or 0.0, digits) for value in beside):
            return digits
    return MAX_DIGITS


def letter(place: int) -> str:
    """Return the letter of the bucket at a place from 0: A to Z, then A2 and so on."""
    again, at = divmod(place, len(ascii_uppercase))
    return ascii_uppercase[at] + (str(again + 1) if again else "")
