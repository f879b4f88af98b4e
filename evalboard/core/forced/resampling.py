"""Bound numbers by resampling whole responses, because positions of one response are correlated.

A mean is bounded by the studentised bootstrap (Efron and Tibshirani, 1993, chapter 12): KL estimates are skewed, and
plain percentile intervals cover the truth less often than stated. A quantile has no usable standard error and is
bounded by the percentiles; a share has an interval of its own.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.base import finite
from evalboard.contract.parts import Estimate
from evalboard.core.stats import beta_quantile, normal_quantile, student_quantile

Numbers = NDArray[np.float64]

LEVEL = 0.95  # of every interval here
N_DRAWS = 999
MIN_RESPONSES = 5  # with a known position; fewer say nothing of how much responses differ
CELLS = 1 << 22  # numbers of responses in a drawing that are in memory at once
WITH_SPREAD = 0.99  # of the drawings, for which a standard error must be known


class Resampler:
    """Draws of m responses out of m, the same ones for each number that is bounded."""

    def __init__(self, n_responses: int, random_seed: int) -> None:
        self.n_responses = n_responses
        self._random_seed = random_seed

    def bound_mean(self, sums: Numbers, counts: Numbers, *, lowest: float = -np.inf) -> Estimate | None:
        """Return the mean over positions with its interval; None without positions.

        Response i has counts[i] positions, which add up to sums[i]. lowest: the smallest possible mean.
        """
        n = counts.sum()
        if not n:
            return None
        mean = float(sums.sum() / n)
        if np.count_nonzero(counts) < MIN_RESPONSES:
            return _estimate(mean)
        parts = np.stack([sums, counts, sums**2, sums * counts, counts**2], axis=1)
        total, number, squares, products, lengths = np.concatenate([drawn @ parts for drawn in self._draws()]).T
        with np.errstate(invalid="ignore", divide="ignore"):  # a drawing of responses without any position
            means = total / number
            errors = _error(squares, products, lengths, means, number)
            steps = (means - mean) / errors
        has_error = errors > 0
        if has_error.mean() < WITH_SPREAD:
            return _estimate(mean, *_percentiles(means))
        error = math.sqrt(((sums - mean * counts) ** 2).sum()) / float(n)
        low, high = _percentiles(steps[has_error])
        return _estimate(mean, max(mean - high * error, lowest), mean - low * error)

    def bound_share(self, hits: Numbers, counts: Numbers) -> Estimate | None:
        """Return the share of positions that are hits: hits[i] of counts[i] in response i.

        Clopper and Pearson's interval of as many independent positions as scatter as these do: their number by the
        design effect, less where few responses tell it (Korn and Graubard, 1998).
        """
        n = counts.sum()
        if not n:
            return None
        share = float(hits.sum() / n)
        n_responses = int(np.count_nonzero(counts))
        if n_responses < MIN_RESPONSES:
            return _estimate(share)
        alone = share * (1 - share) / n
        together = ((hits - share * counts) ** 2).sum() * n_responses / (n_responses - 1) / n**2
        n_alone = n / max(together / alone, 1.0) if alone else n
        tail = (1 - LEVEL) / 2
        n_alone *= (normal_quantile(1 - tail) / student_quantile(1 - tail, n_responses - 1)) ** 2
        n_hits = share * n_alone
        low = beta_quantile(tail, n_hits, n_alone - n_hits + 1) if share > 0 else 0.0
        high = beta_quantile(1 - tail, n_hits + 1, n_alone - n_hits) if share < 1 else 1.0
        return _estimate(share, low, high)

    def bound_ess(self, weights: Numbers, squares: Numbers, counts: Numbers) -> Estimate | None:
        """Return Kish's effective sample size of importance weights as a share: (Σw)² / n Σw².

        The sums of each response's weights, of their squares, and how many it has. None where every weight is 0, or
        they are too large for a float64.
        """
        if not squares.sum():
            return None
        value = float(weights.sum() ** 2 / (counts.sum() * squares.sum()))
        if not math.isfinite(value):
            return None
        if np.count_nonzero(counts) < MIN_RESPONSES:
            return _estimate(value)
        parts = np.stack([weights, squares, counts], axis=1)
        total, square, number = np.concatenate([drawn @ parts for drawn in self._draws()]).T
        with np.errstate(invalid="ignore"):  # a drawing of responses whose every weight is 0
            return _estimate(value, *_percentiles(total**2 / (number * square)))

    def bound_quantile(self, values: Numbers, owners: NDArray[np.int64], level: float) -> Estimate | None:
        """Return a quantile of the known values, where values[i] belongs to response owners[i].

        It is one of the values, the first one that the share `level` of all does not exceed.
        """
        known = np.flatnonzero(~np.isnan(values))
        if not len(known):
            return None
        order = known[np.argsort(values[known], kind="stable")]
        ranked, ranked_owners = values[order], owners[order]
        value = float(ranked[_rank(len(ranked), level)])
        if len(np.unique(ranked_owners)) < MIN_RESPONSES:
            return _estimate(value)
        drawn = []
        for chosen in self._draws():
            for row in chosen.astype(np.int64):
                ends = np.cumsum(row[ranked_owners])
                if ends[-1]:
                    drawn.append(ranked[np.searchsorted(ends, _rank(int(ends[-1]), level), side="right")])
        return _estimate(value, *_percentiles(np.array(drawn)))

    def _draws(self) -> Iterator[Numbers]:
        """Yield float64[draws, m]: how often each response comes in each drawing; N_DRAWS in all."""
        rng = np.random.default_rng(self._random_seed)
        n = self.n_responses
        most = max(CELLS // n, 1)
        for first in range(0, N_DRAWS, most):
            size = min(most, N_DRAWS - first)
            chosen = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
            yield np.bincount(chosen.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)


def _estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value=value, low=finite(low), high=finite(high))


def _error(squares: Numbers, products: Numbers, lengths: Numbers, mean: Numbers, number: Numbers) -> Numbers:
    """Return the standard error of a ratio of sums; 0 if only rounding errors are left."""
    spread = squares - 2 * mean * products + mean**2 * lengths
    return np.where(spread > 1e-12 * squares, np.sqrt(np.maximum(spread, 0)), 0.0) / number


def _rank(n: int, level: float) -> int:
    return min(max(int(np.ceil(level * n - 1e-9)) - 1, 0), n - 1)


def _percentiles(drawn: Numbers) -> tuple[float, float]:
    low, high = np.nanpercentile(drawn, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return float(low), float(high)
