"""Find answers from another computation: repeats of a case that are outliers while the others agree.

This detects a gateway that silently routes a few requests to another build. Distances are mean squares of D in nats²,
as in `one_computation`.
"""

import math
import statistics
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NORMAL = statistics.NormalDist()

Distances = NDArray[np.float64]
Bools = NDArray[np.bool_]

FAR_FLOORS = 3.0  # noise of its dtype's floor moves an answer by no more
FAR_TYPICAL = 6.0  # and noise that the repeats measure, below the floor, by no more than so many times its typical size
MAX_TYPICAL = 0.35  # of `far`: where noise is typically larger, the floor is too low to go by,
FAR_SPREADS = 7.0  # an answer is far if it is so many standard deviations of the logarithm away
MIN_CASES = 10  # in which all repeats differ, to measure these
LOW = 0.15  # the quantile by which they are measured: strays widen the other end
MIN_SEPARATION = 3.0  # by how much farther off than the others are from each other, in nats over nats
MIN_STRAYS = 3  # in as many cases: one far answer may be anything


@dataclass(frozen=True, slots=True)
class BucketStrays:
    """The responses of one bucket that come from another build.

    n_cases: that were looked at. places: (case, repeat) of each, as indexes into the tables. distance: their root mean
    square distance in nats; noise: that of the other repeats of their cases; 0 if there are none.
    n_agreeing: repeats that agree with most of their case, in all cases. far: in nats, beyond noise.
    """

    n_cases: int
    places: tuple[tuple[int, int], ...]
    distance: float
    noise: float
    n_agreeing: int
    far: float


def find_strays(tables: Distances, *, far: float) -> BucketStrays | None:
    """Find responses from another build among the repeats of some cases; None if there are too few.

    There must be at least MIN_STRAYS and a gap: fewer responses are half as far off, and fewer cases have no majority.
    Noise that is merely larger in some answers has no such gap.

    tables: float64[n, k, k] of n cases, NaN for a pair that shares too few positions, and for each of a missing repeat.
    far: in nats, FAR_FLOORS floors of the dtype; 0 if repeats must be the same to the bit.
    """
    off = _Off(tables, _measure_far(tables, far))
    n_stray_cases = int(off.is_stray.any(axis=1).sum())
    n_scattered, n_between = int((~off.has_majority).sum()), int(off.is_between.sum())
    if n_stray_cases < MIN_STRAYS or n_scattered >= n_stray_cases or n_between >= off.is_stray.sum():
        return None
    return off.strays


def list_strays(tables: Distances, *, far: float) -> BucketStrays:
    """List the responses from another build in further cases of a bucket where `find_strays` had some.

    far: from that result.
    """
    return _Off(tables, far).strays


class _Off:
    """How far each repeat is from those that agree.

    is_stray, is_between: bool[n, k]; is_between: at least half as far off, but no stray. has_majority: bool[n], cases
    most of whose repeats agree.
    """

    def __init__(self, tables: Distances, far: float) -> None:
        self._far = far
        cases = np.arange(len(tables))
        is_near = tables <= far**2  # NaN never is
        counts = is_near.sum(axis=2)
        centres = counts.argmax(axis=1)
        n_there = (~np.isnan(np.diagonal(tables, axis1=1, axis2=2))).sum(axis=1)
        self.has_majority: Bools = 2 * counts[cases, centres] > n_there
        self._agreeing: Bools = is_near[cases, centres] & self.has_majority[:, None]
        self._within = _mean(tables, self._agreeing[:, :, None] & self._agreeing[:, None, :], (1, 2))
        others = self._agreeing[:, None, :] & ~np.eye(tables.shape[2], dtype=bool)
        nearest = np.where(others, tables, np.inf).min(axis=2)  # NaN is above nothing
        nearest[~self.has_majority] = np.nan
        limit = np.maximum(far**2, MIN_SEPARATION**2 * self._within)[:, None]
        self.is_stray: Bools = nearest > limit
        self.is_between: Bools = (nearest > limit / 4) & ~self.is_stray
        self._off = _mean(tables, others, 2)

    @property
    def strays(self) -> BucketStrays:
        cases, repeats = np.nonzero(self.is_stray)
        n = max(len(cases), 1)
        return BucketStrays(
            n_cases=len(self.is_stray),
            places=tuple(zip(cases.tolist(), repeats.tolist(), strict=True)),
            distance=math.sqrt(float(self._off[cases, repeats].sum()) / n),
            noise=math.sqrt(float(self._within[cases].sum()) / n),
            n_agreeing=int(self._agreeing.sum()),
            far=self._far,
        )


def _measure_far(tables: Distances, far: float) -> float:
    """Return the distance in nats beyond noise, measured on most repeats; `far` if they measure nothing."""
    pairs = tables[:, *np.triu_indices(tables.shape[2], 1)]
    pairs = np.sqrt(pairs[~np.isnan(pairs).any(axis=1)])
    moved = np.log(pairs[(pairs > 0).all(axis=1)])
    typical = float(np.median(np.median(pairs, axis=1))) if len(pairs) else 0.0
    if not far or not typical or len(moved) < MIN_CASES:
        return far
    near = min(far, FAR_TYPICAL * typical)
    if typical <= MAX_TYPICAL * far:
        return near
    low = float(np.quantile(moved - np.median(moved, axis=1, keepdims=True), LOW))
    return max(near, typical * math.exp(FAR_SPREADS * low / _NORMAL.inv_cdf(LOW)))


def _mean(tables: Distances, is_meant: Bools, axis: int | tuple[int, ...]) -> Distances:
    """Return the mean of the pairs that are meant and known; 0 where there are none."""
    is_known = is_meant & ~np.isnan(tables)
    total: Distances = np.where(is_known, tables, 0).sum(axis=axis)
    mean: Distances = total / np.maximum(is_known.sum(axis=axis), 1)
    return mean
