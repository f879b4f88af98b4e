"""Find what would decide a difference: the checkpoint to reach, or the cases needed.

Points throughout. A checkpoint is a number of repeats on both sides at which the policy may decide.
"""

import math
from dataclasses import dataclass

from evalboard.contract.release import EarlyLean, Expected, TargetedSettling
from evalboard.core.stats import (
    POWER,
    DifferenceEstimate,
    PairedNoise,
    expected_range_points,
    find_run_sds,
    make_estimate,
    move_as_a_whole,
    normal_cdf,
    normal_quantile,
    scale_noise,
    se_seen,
    unseen,
)
from evalboard.core.suite import TARGETED_ALPHA, TARGETED_REPEATS, PolicySettings

MIN_CHANCE = 0.1  # below it, no more repeats are recommended


@dataclass(frozen=True, slots=True)
class SettlingLook:
    """The next checkpoint to reach.

    look: the total of repeats per side, None if hardly worth it. chance: that it decides there, or the best chance of
    all later checkpoints; 0 after the last.
    """

    look: int | None
    chance: float

    @property
    def is_likely(self) -> bool:
        return self.chance >= POWER


def choose_look(policy: PolicySettings, k: int) -> int | None:
    """Return the look that k repeats a side allow; None before the first."""
    return max((look for look in policy.looks if look <= k), default=None)


def min_half_width(n_cases: int, look: int, policy: PolicySettings, *, share_seeds: bool = False) -> float:
    """Return half the interval's width if no case changed: unseen noise is not zero.

    What draws that share their seeds never showed is one noise, that of their differences, and not one a side.
    """
    least = unseen(policy.metric) / look
    n_noises = 1 if share_seeds else 2
    return 100 * normal_quantile(1 - policy.alpha(look)) * math.sqrt(n_noises * least / look) / n_cases


def count_cases_needed(policy: PolicySettings, *, share_seeds: bool = False) -> dict[int, int]:
    """Return checkpoint → fewest cases that could decide, if no case changed."""
    halves = {look: min_half_width(1, look, policy, share_seeds=share_seeds) for look in policy.looks}
    return {look: math.floor(half / policy.tolerance_points) + 1 for look, half in halves.items()}


def is_too_small(n_cases: int, look: int, policy: PolicySettings, *, share_seeds: bool = False) -> bool:
    return min_half_width(n_cases, look, policy, share_seeds=share_seeds) >= policy.tolerance_points


def find_settling(
    difference: float, measured: PairedNoise, look: int, policy: PolicySettings, *, is_targeted: bool = False
) -> SettlingLook:
    """Return the first checkpoint likely to decide, else the one with the best chance."""
    later_looks = policy.later_looks(look, is_targeted=is_targeted)
    chances = {later: settling_chance(difference, measured, later, policy) for later in later_looks}
    best = max(chances, key=lambda later: min(chances[later], POWER), default=None)  # the first of equals
    chance = 0.0 if best is None else chances[best]
    return SettlingLook(best if chance >= MIN_CHANCE else None, chance)


def settling_chance(difference: float, measured: PairedNoise, look: int, policy: PolicySettings) -> float:
    """Return the chance that a later checkpoint gives ship or no-ship, given the repeats so far.

    The difference moves until then as repeats were seen to scatter, around a true one that may lie to either side of
    it. The interval there has its own floor, since what so many repeats never show weighs less.
    """
    half = _there(difference, measured, look).half_width(policy.alpha(look))
    chance = _leaves(difference, _moves(measured, look), half, policy.tolerance_points)
    return chance * (_guard_holds(measured, look, policy) if policy.is_guarded else 1.0)


def find_targeted(
    difference: float, by_strata: PairedNoise | None, look: int, policy: PolicySettings
) -> TargetedSettling | None:
    """Return what repeats of only the noisiest cases would do instead of the next checkpoint.

    None if it is hardly worth it, or the last checkpoint is past. by_strata: of the whole repeats; None if noisy cases
    are unknown. If runs move as a whole, single cases are not what is noisy. The ranges for the range limit are
    unchanged.
    """
    if by_strata is None or look not in TARGETED_REPEATS or move_as_a_whole(by_strata):
        return None
    n_more = TARGETED_REPEATS[look]
    there = scale_noise(by_strata, look, n_more)
    half = make_estimate(difference, there).half_width(TARGETED_ALPHA)
    moves = math.sqrt(max(se_seen(by_strata) ** 2 - se_seen(there) ** 2, 0.0))
    chance = _leaves(difference, moves, half, policy.tolerance_points)
    if chance < MIN_CHANCE:
        return None
    return TargetedSettling(repeats=n_more, n_cases=by_strata.strata[-1].n_cases, chance=chance)


def _moves(measured: PairedNoise, look: int) -> float:
    """Return the standard deviation of the difference's change until both sides have `look` repeats."""
    if measured.strata:
        return math.sqrt(max(se_seen(measured) ** 2 - se_seen(_scaled(measured, look)) ** 2, 0.0))
    return se_seen(measured) * math.sqrt(1 - measured.k_baseline / look)


def _leaves(difference: float, moves: float, half: float, tolerance: float) -> float:
    """Return the chance that the interval excludes the tolerance after the difference has moved."""
    ship_above, no_ship_below = -tolerance + half, -tolerance - half
    if moves == 0:
        return float(difference > ship_above or difference < no_ship_below)
    return normal_cdf((difference - ship_above) / moves) + normal_cdf((no_ship_below - difference) / moves)


def expect_interval(difference: float, measured: PairedNoise, look: int, policy: PolicySettings) -> Expected:
    """Return the expected interval at `look` repeats per side, if difference and noise stay the same."""
    low, high = _there(difference, measured, look).interval(policy.alpha(look))
    return Expected(repeats=look, low=low, high=high)


def _there(difference: float, measured: PairedNoise, look: int) -> DifferenceEstimate:
    return make_estimate(difference, _scaled(measured, look))


def _scaled(measured: PairedNoise, look: int) -> PairedNoise:
    """Return the noise to expect at a later look, where further repeats of the noisiest cases stay in."""
    n_targeted = measured.strata[-1].k_baseline - measured.k_baseline if measured.strata else 0
    return scale_noise(measured, look, n_targeted)


def _guard_holds(measured: PairedNoise, look: int, policy: PolicySettings) -> float:
    """Return the chance that neither side's range of five repeats exceeds the range limit."""
    holds = 1.0
    for sd in filter(None, find_run_sds(measured)):
        room = policy.guard_points / expected_range_points(sd) - 1
        holds *= normal_cdf(room * math.sqrt(2 * (look - 1)))
    return holds


def name_leaning(difference: float, tolerance: float) -> str:
    """Return the direction of an open difference; never a verdict."""
    if difference > -tolerance / 2:
        return "ship"
    return "no_ship" if difference < -1.5 * tolerance else "none"


def estimate_leaning(estimate: DifferenceEstimate, alpha: float, tolerance: float) -> str:
    """Return the same where there are too few repeats: what the interval would say."""
    half = estimate.half_width(alpha)
    if estimate.difference - half > -tolerance:
        return "ship"
    return "no_ship" if estimate.difference + half < -tolerance else "none"


def lean_early(early: DifferenceEstimate | None, alpha: float, tolerance: float) -> EarlyLean | None:
    """Return the lean by the noise that was foretold; None where none was."""
    if early is None:
        return None
    low, high = early.interval(alpha)
    leaning = estimate_leaning(early, alpha, tolerance)
    return EarlyLean(low=low, high=high, level=1 - 2 * alpha, leaning=leaning)
