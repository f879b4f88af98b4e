"""Test whether two sides computed the same: do they differ more than repeats of either side do?

The distance of two responses is the mean square of the top-2 gap shift D over the positions they share, in nats²
(docs/divergence.md). If both sides computed the same with like noise, the distance across them is on average the mean
of the distances within. If one side is quieter, it may repeat one and the same sample of the other's noise; the
distance across is then at most that within the noisier side. The case is the unit: its repeats count once. An answer
that was given again is no second sample of the noise (`copies.find_samples`).
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.compare import OneComputation
from evalboard.core.stats.copies import find_samples
from evalboard.core.stats.quantiles import normal_cdf

Distances = NDArray[np.float64]
Bools = NDArray[np.bool_]
Answer = Literal["one", "two", "apart", "unknown"]

MAX_CHANCE = 0.001  # of the comparisons of one computation, at most this share is called two
MIN_REPEATS = 3  # of a side whose repeats differ: the distance of one pair is too rough
ALIKE = 1.2  # one side's mean distance over the other's, up to which their noise counts as alike
ALIKE_IN_CASE = 4.0  # the same of a single case: its few repeats show its noise to a factor of 2, in nats
MIN_CASES_JUDGED = 10  # with fewer, no order of the cases is rarer than MAX_CHANCE, and no noise counts as measured
MAX_EXACT = 30  # cases: up to here the chance is counted out; beyond, its normal limit is near and no smaller


def judge_steady(is_apart: NDArray[np.bool_]) -> OneComputation:
    """Judge two sides whose repeats are the same to the bit. is_apart: bool[n], whether any bit differs."""
    n_apart = int(np.count_nonzero(is_apart))
    answer: Answer = "unknown" if not len(is_apart) else "two" if n_apart else "one"
    return _judged(answer, len(is_apart), n_apart, is_steady=True)


def judge_distances(across: Distances, within: tuple[Distances, Distances], *, floor: float) -> OneComputation:
    """Test whether the sides differ by more than noise. Arrays are float64[n] by case, NaN: not known.

    floor: root mean square of D in nats that noise may have if repeats show none. If enough cases show some, a case
    that shows none is given that of the noisiest one, at most the floor.
    """
    is_known = ~np.isnan(np.column_stack([across, *within])).any(axis=1)
    far, noise = across[is_known], _noise(within[0][is_known], within[1][is_known])
    n_cases, n_apart = len(far), int(np.count_nonzero(far))
    if not n_cases:
        return _judged("unknown", 0, 0)
    chance = _signed_rank_chance(_log_ratios(far, np.where(noise > 0, noise, _unseen(noise, floor * floor))))
    return _judged(
        "unknown" if n_cases < MIN_CASES_JUDGED else "two" if chance < MAX_CHANCE else "one",
        n_cases,
        n_apart,
        chance=chance,
        shift=math.sqrt(max(float(np.mean(far - noise)), 0.0)),
        noise=math.sqrt(float(np.mean(noise))),
    )


def tell_apart(judged: OneComputation, n_repeats: NDArray[np.int64], *, n_cases: int, floor: float) -> OneComputation:
    """Answer "apart" if each side's repeats agree to the bit, but too many cases differ between sides.

    judged: by distances, whose floor hides what lies below it. n_repeats: int64[n, 2] of the cases that differ, by
    side; n_cases: all that could. Of one computation every order of a case's repeats is as likely, so that its two
    answers fall to one side each in at most 2 of C(a + b, a) orders.
    """
    chance = _order_chance(n_repeats)
    if judged.answer == "two" or not judged.shift or chance >= MAX_CHANCE:
        return judged
    apart = {"answer": "apart", "n_cases": n_cases, "n_apart": len(n_repeats), "chance": chance, "floor": floor}
    return judged.model_copy(update=apart)


def count_equal(
    judged: OneComputation, n_repeats: NDArray[np.int64], *, n_equal: int, n_differing: int
) -> OneComputation:
    """Answer "one" if enough cases are equal to the bit, and too few others differ to be judged.

    judged: the answer "unknown". n_repeats: int64[n, 2] of the differing cases in which each side's repeats agree, by
    side: these must be as likely as in `tell_apart`. n_equal, n_differing: cases.
    """
    if n_equal < MIN_CASES_JUDGED or n_differing >= MIN_CASES_JUDGED or _order_chance(n_repeats) < MAX_CHANCE:
        return judged
    counted = {"answer": "one", "n_cases": n_equal, "n_apart": 0, "chance": None, "shift": None, "noise": None}
    return judged.model_copy(update=counted)


def average_distances(distances: Distances, are_alike: Bools, n_ours: int) -> Distances:
    """Return float64[n, 3]: each case's mean distance across sides and within each; NaN if unknown.

    distances: float64[n, k, k] of a case's k answers, the baseline's n_ours first, NaN for a pair that shares too few
    positions. are_alike: bool[n, k, k], which of them are one answer.
    """
    n, k, _ = distances.shape
    counts, is_ours = find_samples(are_alike, n_ours), np.arange(k) < n_ours
    is_known = ~np.isnan(distances) & counts[:, :, None] & counts[:, None, :]
    means = np.full((n, 3), np.nan)
    pairs = [is_ours[:, None] & ~is_ours, *(np.triu(side[:, None] & side, 1) for side in (is_ours, ~is_ours))]
    for at, is_pair in enumerate(pairs):
        known = is_known[:, is_pair]
        sums, sizes = np.where(known, distances[:, is_pair], 0.0).sum(axis=1), known.sum(axis=1)
        means[sizes > 0, at] = sums[sizes > 0] / sizes[sizes > 0]
    for at, side in ((1, is_ours), (2, ~is_ours)):
        is_rough = (counts[:, side].sum(axis=1) < MIN_REPEATS) & (means[:, at] > 0)
        means[is_rough, at] = np.nan
        if side.sum() > 1:
            means[are_alike[:, side][:, :, side].all(axis=(1, 2)), at] = 0.0
    return means


def _order_chance(n_repeats: NDArray[np.int64]) -> float:
    """Return the chance that each case has different answers on the two sides, if order is random.

    n_repeats: int64[n, 2], by case and side.
    """
    return math.prod(2 / math.comb(ours + theirs, ours) for ours, theirs in n_repeats.tolist())


def _judged(
    answer: Answer, n_cases: int, n_apart: int, *, is_steady: bool = False, **measured: float
) -> OneComputation:
    """Return an answer with its figures: `shift` and `noise` in nats, and the `chance`."""
    counted = {"answer": answer, "n_cases": n_cases, "n_apart": n_apart, "is_steady": is_steady}
    return OneComputation.from_stored(counted | measured)


def _noise(ours: Distances, theirs: Distances) -> Distances:
    """Return float64[n]: the distance across the sides expected for each case from noise within them."""
    quieter, noisier = sorted((ours, theirs), key=lambda side: float(side.sum()))
    larger: Distances = np.maximum(ours, theirs)
    if noisier.sum() > ALIKE * quieter.sum():
        return larger
    is_alike = larger <= ALIKE_IN_CASE * np.minimum(ours, theirs)
    return np.where(is_alike, (ours + theirs) / 2, larger)


def _unseen(noise: Distances, at_most: float) -> float:
    """Return the noise of a case that shows none: the floor if too few others were measured."""
    shown = noise[noise > 0]
    return at_most if len(shown) < MIN_CASES_JUDGED else min(float(shown.max()), at_most)


def _log_ratios(far: Distances, noise: Distances) -> Distances:
    """Return log(across/within) of the cases where the two differ, infinite where only one of them is 0."""
    is_untied = far != noise
    with np.errstate(divide="ignore"):
        ratios: Distances = np.log(far[is_untied]) - np.log(noise[is_untied])
    return ratios


def _signed_rank_chance(values: Distances) -> float:
    """Return the one-sided p-value of Wilcoxon's signed rank test: exact for few values, ties or not.

    The limit alone would never call up to 12 cases two, however far apart they all lie.
    """
    if not len(values):
        return 1.0
    _, place, counts = np.unique(np.abs(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[place.ravel()]
    positive = float(ranks[values > 0].sum())
    if len(ranks) <= MAX_EXACT:
        return _share_of_signs(ranks, positive)
    centred = positive - ranks.sum() / 2
    return 1 - normal_cdf(centred / math.sqrt(float(ranks @ ranks) / 4))


def _share_of_signs(ranks: Distances, positive: float) -> float:
    """Return the share of the 2ⁿ choices of signs whose positive ranks sum to as much or more."""
    doubled = np.rint(2 * ranks).astype(int)  # ranks of ties are halves
    ways = np.zeros(doubled.sum() + 1)
    ways[0] = 1
    for rank in doubled:
        ways[rank:] += ways[:-rank].copy()
    return float(ways[round(2 * positive) :].sum() / ways.sum())
