"""Measure how the scores of equal runs spread: range and standard deviation, with intervals.

That of the range is for the range that as many runs have on average, and for runs that scatter normally. That of the
standard deviation is chi-squared's, but its upper end is never below that of the studentised bootstrap, which sees
tails, nor below what runs leave unseen: what none of n runs showed may still happen in 3/n of them, and moves a score
by a step of one case. Where all runs score the same only that bound is left.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evalboard.core import special
from evalboard.core.stats import SEEN_IN_NONE

LEVEL = 0.95
FARTHEST = 9.0  # standard deviations; beyond them is nothing that double precision shows
GRID = 2401
WIDEST = 16.0  # standard deviations that a range is looked for within
N_DRAWS, DRAWING_SEED = 999, 20261126  # of the bootstrap; the same scores always give the same interval
FEW_RUNS, HEAVY_TAILS = 20, 4.0  # of fewer runs with such a kurtosis (3 is normal) no upper end is known
SMALLEST_ERROR, LARGEST_EXPONENT = 1e-9, 30.0
HIGHEST_SD = 50.0  # of scores from 0 to 100 in as many runs as one likes


@dataclass(frozen=True, slots=True)
class Spread:
    """Scores of n runs in points. Intervals are (low, high) in points, None with fewer than two runs.

    `sd` is the sample's, `range_interval` for the mean range of n such runs. Where all runs scored the same both
    intervals begin at 0. is_open: the upper end of `sd_interval` is the least that it may be.
    """

    n: int
    low: float
    high: float
    sd: float | None
    range_interval: tuple[float, float] | None
    sd_interval: tuple[float, float] | None
    is_open: bool = False

    @property
    def range(self) -> float:
        return self.high - self.low


def measure_spread(points: Sequence[float], *, step: float, level: float = LEVEL) -> Spread:
    """Measure the spread of scores. points: one score or more; step: points of one case."""
    n, low, high = len(points), min(points), max(points)
    if n < 2:
        return Spread(n, low, high, None, None, None)
    unseen = largest_unseen_sd(n, step=step)
    if low == high:
        return Spread(n, low, high, 0.0, (0.0, mean_range(n) * unseen), (0.0, unseen))
    mean = math.fsum(points) / n
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in points) / (n - 1))
    tails = ((1 + level) / 2, (1 - level) / 2)
    sd_low, sd_high = (sd * math.sqrt((n - 1) / float(special.chdtri(n - 1, 1 - tail))) for tail in tails)
    wide = (high - low) * mean_range(n)
    range_low, range_high = (wide / range_quantile(tail, n) for tail in tails)
    resampled, kurtosis = _resampled_sd(points, tails[1])
    sd_high = max(sd_high, unseen, min(resampled, HIGHEST_SD * math.sqrt(n / (n - 1))))
    is_open = n < FEW_RUNS and kurtosis > HEAVY_TAILS
    return Spread(n, low, high, sd, (range_low, range_high), (sd_low, sd_high), is_open)


def largest_unseen_sd(n: int, *, step: float) -> float:
    """Return the largest standard deviation that n equal runs fail to show 95 times in 100."""
    return step * math.sqrt(SEEN_IN_NONE / n)


def _resampled_sd(points: Sequence[float], tail: float) -> tuple[float, float]:
    """Return the studentised bootstrap's upper end of the standard deviation, and the scores' kurtosis.

    Resamples with fewer than three distinct scores are left out, because they have no usable standard error.
    """
    # From the lowest score up, in one order: the order of runs changes no digit.
    rises = np.sort(np.array(points)) - min(points)
    n = len(rises)
    drawn = np.sort(rises[np.random.default_rng(DRAWING_SEED).integers(0, n, (N_DRAWS, n))], axis=1)
    distinct = 1 + np.count_nonzero(np.diff(drawn), axis=1)
    enough = drawn[distinct >= min(3, len(set(points)))]
    variances, errors, _ = _log_variances(enough)
    [variance], [error], [kurtosis] = _log_variances(rises[None])
    is_known = errors > SMALLEST_ERROR
    if not is_known.any():
        return 0.0, float(kurtosis)
    lowest = np.quantile((np.log(variances) - math.log(variance))[is_known] / errors[is_known], tail)
    return math.sqrt(variance) * math.exp(min(-lowest * error / 2, LARGEST_EXPONENT)), float(kurtosis)


def _log_variances(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return of each row its variance, the standard error of that variance's logarithm, and its kurtosis."""
    n = rows.shape[1]
    squares = (rows - rows.mean(axis=1, keepdims=True)) ** 2
    kurtoses = (squares**2).mean(axis=1) / squares.mean(axis=1) ** 2
    errors = np.sqrt(np.maximum(kurtoses - (n - 3) / (n - 1), 0) / n)
    return squares.sum(axis=1) / (n - 1), errors, kurtoses


@cache
def mean_range(n: int) -> float:
    """Return the mean range of n draws from a standard normal: 3.735 of 20."""
    at = np.linspace(-FARTHEST, FARTHEST, GRID)
    below = special.ndtr(at)
    return float(np.trapezoid(1 - below**n - (1 - below) ** n, at))


@cache
def range_quantile(level: float, n: int) -> float:
    """Return what the range of n draws from a standard normal stays below with probability `level`."""
    low, high = 0.0, WIDEST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _range_cdf(middle, n) < level else (low, middle)
    return (low + high) / 2


def _range_cdf(width: float, n: int) -> float:
    """Return the probability that n standard normal values lie within a range of `width`."""
    at = np.linspace(-FARTHEST, FARTHEST, GRID)
    density = np.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)
    return float(np.trapezoid(n * density * (special.ndtr(at + width) - special.ndtr(at)) ** (n - 1), at))
