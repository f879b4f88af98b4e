"""How much of a difference is noise, in a sentence."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from evalboard.core.rounding import shown
from evalboard.wording.messages import Messages, speak
from evalboard.wording.numbers import MAX_DIGITS, points, signed

if TYPE_CHECKING:
    from evalboard.contract.compare import NoiseShare

Facts = Mapping[str, Any]

REASONS = Messages(
    "noise_share",
    {
        ("noise", "unknown"): {
            "left_out": "Noise was not measured: answers came from a cache or a fallback.",
            "copies": "Noise was not measured: some repeats are copies of earlier answers.",
            "one_draw": "All repeats were identical, so noise under other batching was not measured.",
            "one_repeat": "Noise was not measured. It takes two repeats on one side.",
        },
    },
)
SHARES = Messages(
    "noise_share",
    {
        ("noise", "asserts"): {
            "none_of_it": "Noise moves this score by at most ±{most} points ({level:share}).",
            "part_of_it": "Noise moves this score by at most ±{most} points ({level:share}). At least {beyond} "
            "of {change} points is "
            "not noise.",
        },
        ("noise", "allows"): {
            "all_of_it": "Noise moves this score by at most ±{most} points ({level:share}). All of {change} "
            "points may be noise."
        },
        ("near_tie", "asserts"): {"near_ties": "Near ties account for {near_ties:signed} points."},
        ("near_tie", "allows"): {"near_ties_are_noise": "Noise alone can decide a near tie."},
    },
)


def write_noise_share(facts: Facts, *, with_codes: Iterable[str] = ()) -> str:
    """Write a comparison's `noise_share`.

    facts: {"difference", "near_ties"} in points, `near_ties` None if none moved a score, {"level"}, and the fields of
    `core.stats.DifferenceNoise`. with_codes: of the claims that the comparison makes elsewhere.
    """
    if facts["up_to"] is None:
        claims = [REASONS.claim(facts["reason"])]
        if facts["near_ties"] is not None:
            claims += [SHARES.claim(code, facts) for code in ("near_ties", "near_ties_are_noise")]
        return speak(claims, with_codes=with_codes)
    limit, digits = _round_up(facts["up_to"])
    difference = facts["difference"]
    moved = shown(abs(difference), digits)
    rest = shown(moved - limit, digits)
    code = "none_of_it" if not moved else "all_of_it" if rest <= 0 else "part_of_it"
    return SHARES.write(
        code,
        level=facts["level"],
        most=write_noise_limit(facts["up_to"]),
        change=signed(difference, digits),
        beyond=signed(math.copysign(rest, difference), digits),
    )


def list_noise_codes(share: "NoiseShare | None") -> tuple[str, ...]:
    """Return the code of the claim that a comparison makes of its noise, where it was not measured."""
    return (f"noise_share.{share.reason}",) if share is not None and share.reason else ()


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
