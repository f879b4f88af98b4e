"""Compare the load under which two sides were decoded, by batch sizes (docs/verdict.md#load).

A response counts with the largest batch that it was decoded in. The smallest one says more of its length than of the
load: the last answers of a shard end nearly alone. Of a server of others the batch is not known; there it is the most
calls of ours that were in flight at once while it was.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from evalboard.core.stats.quantiles import student_quantile

SizeCounts = Mapping[int, int]  # batch size, or calls in flight → responses, of one repeat; empty where not known
BATCHES, CALLS = "batches", "calls"  # which of the two a load is counted in

MIN_LOAD_FACTOR = 1.5  # smaller changes of the batch seldom choose another kernel
LOAD_ALPHA = 0.005  # two-sided: how often scatter alone would call repeats of one load unlike


@dataclass(frozen=True, slots=True)
class SideLoad:
    """The batch sizes, or calls in flight, of one side.

    Geometric mean, median, 10th and 90th percentile, and the share of responses at batch size 1.
    """

    mean: float
    median: int
    low: int
    high: int
    alone: float


@dataclass(frozen=True, slots=True)
class LoadDifference:
    """The loads of two sides that differ. counted: BATCHES or CALLS."""

    baseline: SideLoad
    candidate: SideLoad
    counted: str


def count_in_flight(
    began: Sequence[float] | NDArray[np.float64], ended: Sequence[float] | NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return for each call the most calls in flight at once during it, itself included: int64[n].

    began, ended: seconds, by call. A call that ends as another begins is no longer in flight.
    """
    starts, ends = np.asarray(began, np.float64), np.asarray(ended, np.float64)
    order, n = np.argsort(starts, kind="stable"), len(starts)
    if not n:
        return np.zeros(0, np.int64)
    starts = starts[order]
    # Calls in flight rise at starts alone; the last place is for ranges that reach to the end.
    at_start = np.append(np.arange(1, n + 1) - np.searchsorted(np.sort(ends), starts, side="right"), 0)
    until = np.maximum(np.searchsorted(starts, ends[order]), np.arange(1, n + 1))
    most = np.maximum.reduceat(at_start, np.column_stack([np.arange(n), until]).ravel())[::2]
    counts = np.empty(n, np.int64)
    counts[order] = np.maximum(most, 1)
    return counts


def find_load_difference(
    baseline: Sequence[SizeCounts], candidate: Sequence[SizeCounts], *, counted: str = BATCHES
) -> LoadDifference | None:
    """Return how the loads of two sides differ; None if they do not, or too few repeats report it.

    They differ where mean log sizes lie apart by MIN_LOAD_FACTOR or more, and by more than the repeats of a side
    do: Student's t over repeats, which share one load within themselves, so that no response counts by itself.
    """
    sides = [[counts for counts in repeats if counts] for repeats in (baseline, candidate)]
    df = sum(len(repeats) for repeats in sides) - 2
    if df < 1 or not all(sides):
        return None
    logs = [[_mean_log(counts) for counts in repeats] for repeats in sides]
    ours, theirs = map(fmean, logs)
    squares = sum((log - mean) ** 2 for repeats, mean in zip(logs, (ours, theirs), strict=True) for log in repeats)
    error = math.sqrt(squares / df * sum(1 / len(repeats) for repeats in logs))
    apart = abs(ours - theirs)
    if apart < math.log(MIN_LOAD_FACTOR) or apart <= student_quantile(1 - LOAD_ALPHA / 2, df) * error:
        return None
    return LoadDifference(_summarise(sides[0], math.exp(ours)), _summarise(sides[1], math.exp(theirs)), counted)


def _mean_log(counts: SizeCounts) -> float:
    return sum(n * math.log(size) for size, n in counts.items()) / sum(counts.values())


def _summarise(repeats: Sequence[SizeCounts], mean: float) -> SideLoad:
    total: Counter[int] = Counter()
    for counts in repeats:
        total.update(counts)
    sizes, n = sorted(total), sum(total.values())

    def quantile(share: float) -> int:
        below = 0
        for size in sizes:
            below += total[size]
            if below >= share * n:
                return size
        return sizes[-1]

    return SideLoad(mean, quantile(0.5), quantile(0.1), quantile(0.9), total[1] / n)
