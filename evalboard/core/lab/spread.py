"""How far the scores of equal runs lie apart: their range and standard deviation, each with an interval.

Intervals are for runs that scatter normally. That of the standard deviation is chi-squared's; that of the range comes
from the distribution of the range itself and is for the range that as many runs have on average. Where all runs score
the same there is only an upper bound: how much runs could scatter and still come out the same, as a score moves in
steps of one case.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import special

LEVEL = 0.95
FARTHEST = 9.0  # standard deviations; beyond them is nothing that double precision shows
GRID = 2401
WIDEST = 16.0  # standard deviations that a range is looked for within


@dataclass(frozen=True, slots=True)
class Spread:
    """Scores of n runs in points. Intervals are (low, high) in points, None with fewer than two runs.

    `sd` is the sample's, `range_interval` for the mean range of n such runs. Where all runs scored the same both
    intervals begin at 0.
    """

    n: int
    low: float
    high: float
    sd: float | None
    range_interval: tuple[float, float] | None
    sd_interval: tuple[float, float] | None

    @property
    def range(self) -> float:
        return self.high - self.low


def measure_spread(points: Sequence[float], *, step: float, level: float = LEVEL) -> Spread:
    """Measure how far scores lie apart. points: one or more, in points; step: what one case is worth in points."""
    n, low, high = len(points), min(points), max(points)
    if n < 2:
        return Spread(n, low, high, None, None, None)
    if low == high:
        sd = largest_unseen_sd(n, step=step, level=level)
        return Spread(n, low, high, 0.0, (0.0, mean_range(n) * sd), (0.0, sd))
    mean = math.fsum(points) / n
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in points) / (n - 1))
    tails = ((1 + level) / 2, (1 - level) / 2)
    sd_low, sd_high = (sd * math.sqrt((n - 1) / _chi2_quantile(tail, n - 1)) for tail in tails)
    wide = (high - low) * mean_range(n)
    range_low, range_high = (wide / range_quantile(tail, n) for tail in tails)
    return Spread(n, low, high, sd, (range_low, range_high), (sd_low, sd_high))


def largest_unseen_sd(n: int, *, step: float, level: float = LEVEL) -> float:
    """Return the largest standard deviation under which n runs still come out the same, one time in 1/(1 − level).

    A run's score is a whole number of steps; the mean lies in the middle of one, where the least shows.
    """
    inside = (1 - level) ** (1 / n)  # the chance of one run
    return step / (2 * float(special.ndtri((1 + inside) / 2)))


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
    """Return the chance that n draws lie within a width: the lowest is somewhere, and the others are not far above."""
    at = np.linspace(-FARTHEST, FARTHEST, GRID)
    density = np.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)
    return float(np.trapezoid(n * density * (special.ndtr(at + width) - special.ndtr(at)) ** (n - 1), at))


def _chi2_quantile(level: float, df: int) -> float:
    return float(special.chdtri(df, 1 - level))
