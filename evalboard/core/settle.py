"""What would settle a difference: the look that further repeats should reach, or the cases that it would take.

Points throughout. A look is a number of repeats on both sides at which the policy may decide.
"""

import math
from dataclasses import dataclass

from evalboard.core import noise, paired, quantiles
from evalboard.core.gate import Expected
from evalboard.core.paired import Estimate, Noise
from evalboard.core.policy import PolicySettings

ON_THE_LINE = 1e-12  # points; a difference this close to −tolerance is on it


@dataclass(frozen=True, slots=True)
class Settling:
    """look: the total of repeats a side that would settle it 4 times in 5; None where no look of the policy would.

    within: how near the tolerance line a difference must lie for the last look to leave it open.
    """

    look: int | None
    within: float


def look_at(policy: PolicySettings, k: int) -> int | None:
    """The look that k repeats a side allow; None before the first."""
    return max((look for look in policy.looks if look <= k), default=None)


def least_half_width(n_cases: int, look: int, policy: PolicySettings) -> float:
    """Half the interval that remains with no case seen to move: what was not seen is not zero."""
    unseen = noise.SEEN_IN_NONE / look
    return 100 * quantiles.z(1 - policy.alpha(look)) * math.sqrt(2 * unseen / look) / n_cases


def cases_needed(policy: PolicySettings) -> dict[int, int]:
    """Look → the fewest cases on which it could settle anything, were no case to move."""
    return {look: math.floor(least_half_width(1, look, policy) / policy.tolerance_points) + 1 for look in policy.looks}


def is_too_small(n_cases: int, look: int, policy: PolicySettings) -> bool:
    return least_half_width(n_cases, look, policy) >= policy.tolerance_points


def find_settling(found: Estimate, look: int, policy: PolicySettings) -> Settling:
    """The next look with an 80 % chance to settle this difference, were it the true one."""
    per_repeat = found.se * math.sqrt(look)
    later = [each for each in policy.looks if each > look]
    reach = quantiles.z(1 - policy.alpha(later[0] if later else look)) + quantiles.z(noise.POWER)
    within = reach * per_repeat / math.sqrt(policy.looks[-1])
    off = abs(found.difference + policy.tolerance_points)
    if off < ON_THE_LINE:
        return Settling(None, within)
    total = math.ceil((reach * per_repeat / off) ** 2)
    return Settling(min((each for each in later if each >= total), default=None), within)


def find_settling_of_few(difference: float, measured: Noise, look: int, policy: PolicySettings) -> Settling:
    """The same for a suite too small for the present look: what is not seen to move weighs less at a later one."""
    for later in [each for each in policy.looks if each > look]:
        there = expected(difference, measured, later, policy)
        if there.low > -policy.tolerance_points or there.high < -policy.tolerance_points:
            return Settling(later, 0.0)
    return Settling(None, 0.0)


def expected(difference: float, measured: Noise, look: int, policy: PolicySettings) -> Expected:
    """The interval to expect with `look` repeats a side, were difference and noise to stay what they are."""
    found = paired.with_noise(difference, paired.at_repeats(measured, look))
    half = found.half_width(policy.alpha(look))
    return Expected(repeats=look, low=difference - half, high=difference + half)


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
