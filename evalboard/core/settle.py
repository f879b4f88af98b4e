"""What would settle a difference: the look that further repeats should reach, or the cases that it would take.

Points throughout. A look is a number of repeats on both sides at which the policy may decide.
"""

import math
from dataclasses import dataclass

from evalboard.core import noise, paired, quantiles
from evalboard.core.gate import Expected
from evalboard.core.paired import Estimate, Noise
from evalboard.core.policy import PolicySettings

LEAST_CHANCE = 0.1  # below it nobody is sent to run more repeats


@dataclass(frozen=True, slots=True)
class Settling:
    """look: the total of repeats a side to go to, None where that is hardly worth it. chance: that it settles it there,
    or the best chance of all later looks; 0 after the last.
    """

    look: int | None
    chance: float

    @property
    def is_likely(self) -> bool:
        return self.look is not None and self.chance >= noise.POWER


def look_at(policy: PolicySettings, k: int) -> int | None:
    """The look that k repeats a side allow; None before the first."""
    return max((look for look in policy.looks if look <= k), default=None)


def least_half_width(n_cases: int, look: int, policy: PolicySettings, *, share_seeds: bool = False) -> float:
    """Half the interval that remains with no case seen to move: what was not seen is not zero.

    What draws that share their seeds never showed is one noise, that of their differences, and not one a side.
    """
    unseen = noise.SEEN_IN_NONE / look
    n_noises = 1 if share_seeds else 2
    return 100 * quantiles.z(1 - policy.alpha(look)) * math.sqrt(n_noises * unseen / look) / n_cases


def cases_needed(policy: PolicySettings, *, share_seeds: bool = False) -> dict[int, int]:
    """Look → the fewest cases on which it could settle anything, were no case to move."""
    halves = {look: least_half_width(1, look, policy, share_seeds=share_seeds) for look in policy.looks}
    return {look: math.floor(half / policy.tolerance_points) + 1 for look, half in halves.items()}


def is_too_small(n_cases: int, look: int, policy: PolicySettings, *, share_seeds: bool = False) -> bool:
    return least_half_width(n_cases, look, policy, share_seeds=share_seeds) >= policy.tolerance_points


def find_settling(difference: float, measured: Noise, look: int, policy: PolicySettings) -> Settling:
    """The look to go to: the first that is likely to settle it, else the one with the best chance, if that is any."""
    chances = {later: chance(difference, measured, later, policy) for later in policy.looks if later > look}
    best = max(chances, key=lambda later: min(chances[later], noise.POWER), default=None)  # the first of equals
    if best is None or chances[best] < LEAST_CHANCE:
        return Settling(None, max(chances.values(), default=0.0))
    return Settling(best, chances[best])


def chance(difference: float, measured: Noise, look: int, policy: PolicySettings) -> float:
    """The chance that the verdict at a later look is ship or no-ship, given the repeats so far and nothing else.

    The difference moves until then as repeats were seen to scatter, around a true one that may lie to either side of
    it. The interval there has its own floor, since what so many repeats never show weighs less.
    """
    half = _there(difference, measured, look).half_width(policy.alpha(look))
    moves = paired.se_seen(measured) * math.sqrt(1 - measured.k_baseline / look)
    ship_above, no_ship_below = -policy.tolerance_points + half, -policy.tolerance_points - half
    if moves == 0:
        return float(difference > ship_above or difference < no_ship_below)
    is_ship = quantiles.normal_below((difference - ship_above) / moves)
    is_no_ship = quantiles.normal_below((no_ship_below - difference) / moves)
    return (is_ship + is_no_ship) * (_guard_holds(measured, look, policy) if policy.is_guarded else 1.0)


def expected(difference: float, measured: Noise, look: int, policy: PolicySettings) -> Expected:
    """The interval to expect with `look` repeats a side, were difference and noise to stay what they are."""
    low, high = _there(difference, measured, look).interval(policy.alpha(look))
    return Expected(repeats=look, low=low, high=high)


def _there(difference: float, measured: Noise, look: int) -> Estimate:
    return paired.with_noise(difference, paired.at_repeats(measured, look))


def _guard_holds(measured: Noise, look: int, policy: PolicySettings) -> float:
    """The chance that neither side's range of five repeats is over the guard when it is known from so many."""
    holds = 1.0
    for sd in filter(None, paired.sd_of_runs(measured)):
        room = policy.guard_points / noise.expected_range_points(sd) - 1
        holds *= quantiles.normal_below(room * math.sqrt(2 * (look - 1)))
    return holds


def leaning(difference: float, tolerance: float) -> str:
    """The direction of an open difference; never a verdict."""
    if difference > -tolerance / 2:
        return "ship"
    return "no_ship" if difference < -1.5 * tolerance else "none"


def leaning_of(found: Estimate, alpha: float, tolerance: float) -> str:
    """The same where there are too few repeats: what the interval would say."""
    half = found.half_width(alpha)
    if found.difference - half > -tolerance:
        return "ship"
    return "no_ship" if found.difference + half < -tolerance else "none"
