"""How much of a difference is noise, in a sentence."""

import math
from collections.abc import Mapping
from typing import Any

from evalboard.core.rounding import shown
from evalboard.wording.numbers import MAX_DIGITS, percent, points, signed

Facts = Mapping[str, Any]

REASONS = {
    "left_out": "answers from a cache or after a fallback count in it, and they measure no noise",
    "copies": "some repeats are earlier answers given again, and they count in it",
    "one_draw": "repeats only give the same answers again, so they show none of it",
    "one_repeat": "that takes two repeats of a side",
}


def write_noise_share(facts: Facts) -> str:
    """Write a comparison's `noise_share`.

    facts: {"difference", "near_ties"} in points, `near_ties` None if none moved a score, {"level"}, and the fields of
    `core.stats.DifferenceNoise`.
    """
    difference = facts["difference"]
    if facts["up_to"] is None:
        change = signed(difference)
        what = "How far noise moves this score" if change == "0.0" else f"How much of {change} points is noise"
        return f"{what} is not known: {REASONS[facts['reason']]}.{_near_ties(facts['near_ties'])}"
    limit, digits = _round_up(facts["up_to"])
    most = write_noise_limit(facts["up_to"])
    opening = f"Noise alone moves this score by up to {most} points either way ({percent(facts['level'])})"
    moved = shown(abs(difference), digits)
    rest = shown(moved - limit, digits)
    if not moved:
        return f"{opening}; a smaller change would not show."
    if rest <= 0:
        return f"{opening}, so all of {signed(difference, digits)} points may be noise."
    beyond = signed(math.copysign(rest, difference), digits)
    return f"{opening}, so of {signed(difference, digits)} points at least {beyond} is not noise."


def write_noise_limit(up_to: float) -> str:
    """Write how far noise moves a score, rounded up as in the sentence."""
    return points(*_round_up(up_to))


def _round_up(up_to: float) -> tuple[float, int]:
    """Round up to the fewest decimals that do not double the value; return it and their number.

    Rounding up never calls noise a change.
    """
    for digits in range(1, MAX_DIGITS + 1):
        limit = math.ceil(up_to * 10**digits - 1e-9) / 10**digits
        if limit <= 2 * up_to:
            break
    return limit, digits


def _near_ties(moved: float | None) -> str:
    return "" if moved is None else f" Near ties, which noise alone can decide, moved {signed(moved)} points."
