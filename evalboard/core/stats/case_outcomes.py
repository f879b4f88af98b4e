"""Find the cases that changed between two sides, and those beyond chance (docs/verdict.md).

Scores are float64[n_cases, k] as in noise, each side with its own k, cases in one order; every case has a score on
both sides. Under the null hypothesis the answers of a case are exchangeable between the sides: permuting them shows
how far cases move by chance. No result depends on the order of cases or repeats, to the bit; swapping the sides swaps
broken and fixed.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.compare import OutcomeCounts
from evalboard.contract.parts import CHANGED, ByChance
from evalboard.core.stats import noise
from evalboard.core.stats.significance import benjamini_hochberg, deal_labels

CASE_OUTCOMES = ("broken", "fixed", "unstable")
ROUNDING = 1e-9
DIGITS = 9  # of a move: sums in another order differ in later ones
GRADED_DEALS = 300  # of graded scores: all where there are no more, as with 5 repeats a side, else so many at random
DEALING_SEED = 20261122  # fixed, so that the same scores always give the same chances

Scores = NDArray[np.float64]
Cases = NDArray[np.int64]
Bools = NDArray[np.bool_]
Deals = tuple[Cases, Scores, Scores]  # by deal that changes a case: the case, how far it moves up, the deal's chance


@dataclass(frozen=True, eq=False)
class OutcomeIndexes:
    """Case indexes, int64: broken and fixed by size of change, unstable by spread, largest first.

    Each case is in one of them: one that broke or was fixed is not unstable. counts: how many there are.
    chances: float64[n_cases], for each that broke or was fixed the chance that a case moves as far that way if nothing
    changed; else NaN. is_beyond_chance: bool[n_cases], marks those of `ByChance.n_beyond`. With one repeat on a side,
    or repeats that are the same to the bit, chance is not known: NaN, no mark, None.
    """

    broken: Cases
    fixed: Cases
    unstable: Cases
    chances: Scores
    is_beyond_chance: Bools
    counts: OutcomeCounts


def find_case_outcomes(baseline: Scores, candidate: Scores, *, is_steady: bool = False) -> OutcomeIndexes:
    """Find the cases that changed.

    is_steady: both sides decode to the same bits each time. If a case's repeats agree, any move is real: no chance is
    counted.
    """
    moves = noise.average_cases(candidate) - noise.average_cases(baseline)
    spread = np.fmax(noise.within_case_variances(baseline), noise.within_case_variances(candidate))
    broken, fixed = (np.flatnonzero(sign * moves >= CHANGED - ROUNDING) for sign in (-1, 1))
    unstable = np.flatnonzero((spread > 0) & (np.abs(moves) < CHANGED - ROUNDING))
    chances, is_beyond = np.full(len(moves), np.nan), np.zeros(len(moves), dtype=np.bool_)
    by_chance: list[ByChance] = []
    moves_always = is_steady and not (spread > 0).any()
    if len(moves) and min(baseline.shape[1], candidate.shape[1]) > 1 and not moves_always:
        deals, both = _deal(baseline, candidate, moves), ((-1, broken), (1, fixed))
        for sign, cases in both:
            chances[cases] = _chances(sign * moves[cases], sign, deals, len(moves))
            is_beyond[cases] = benjamini_hochberg(chances[cases].tolist(), n_tests=len(moves))
        by_chance = [
            ByChance(
                n_expected=_count_by_chance(sign, deals, is_beyond), n_beyond=int(np.count_nonzero(is_beyond[cases]))
            )
            for sign, cases in both
        ]
    return OutcomeIndexes(
        broken=_largest_first(broken, np.abs(moves)),
        fixed=_largest_first(fixed, np.abs(moves)),
        unstable=_largest_first(unstable, spread),
        chances=chances,
        is_beyond_chance=is_beyond,
        counts=OutcomeCounts(
            broken=len(broken),
            fixed=len(fixed),
            unstable=len(unstable),
            broken_by_chance=by_chance[0] if by_chance else None,
            fixed_by_chance=by_chance[1] if by_chance else None,
            is_in_every_repeat=True if moves_always else None,
        ),
    )


def _chances(sizes: Scores, sign: int, deals: Deals, n_cases: int) -> Scores:
    """Return for each size the chance that a case moves as far, averaged over all cases' permutations."""
    _, moves, weights = deals
    order = np.lexsort((weights, -sign * moves))  # by both: one order of summing, whatever the order of cases
    total = np.cumsum(weights[order])
    places = np.searchsorted(-sign * moves[order], ROUNDING - sizes, side="right")
    return np.asarray(np.concatenate([[0.0], total])[places] / n_cases)


def _count_by_chance(sign: int, deals: Deals, is_beyond: Bools) -> float:
    """Return how many cases would change with nothing changed.

    Cases that are beyond chance are left out, since what changed is not how far cases move by chance; as many others
    stand in for them.
    """
    cases, moves, weights = deals
    has_changed = (sign * moves > 0) & ~is_beyond[cases]
    n_others = max(int(np.count_nonzero(~is_beyond)), 1)
    return math.fsum(weights[has_changed].tolist()) * len(is_beyond) / n_others


def _deal(baseline: Scores, candidate: Scores, moves: Scores) -> Deals:
    """Permute each case's scores between the sides: all ways for pass/fail, a sample for graded scores."""
    # Column by column: there are many cases and few repeats.
    lowest, highest = (reduce(extreme, [*baseline.T, *candidate.T]) for extreme in (np.fmin, np.fmax))
    changing = np.flatnonzero(highest - lowest >= CHANGED - ROUNDING)  # no deal moves another case as far
    sides = baseline[changing], candidate[changing]
    n_scores = np.column_stack([np.count_nonzero(~np.isnan(side), axis=1) for side in sides])
    together = np.sort(np.concatenate(sides, axis=1), axis=1)  # NaN last
    is_graded = ~((together == 0) | (together == 1) | np.isnan(together)).all(axis=1)
    parts = list(_deal_alike(together, moves[changing], np.column_stack([n_scores, is_graded])))
    nothing = (np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    cases, dealt, weights = (np.concatenate(columns) for columns in zip(nothing, *parts, strict=True))
    return changing[cases], dealt, weights


def _deal_alike(together: Scores, moves: Scores, kinds: Cases) -> Iterator[Deals]:
    """Yield the permutations by kind of case; kinds: scores on each side, and whether they are graded."""
    for kind in np.unique(kinds, axis=0):
        n, n_too, is_graded = kind.tolist()
        cases = np.flatnonzero((kinds == kind).all(axis=1))
        scores = together[cases, : n + n_too]
        dealt, weights = _deal_graded(scores, moves[cases], n) if is_graded else _deal_passes(scores, n)
        rows, deals = np.nonzero(np.abs(dealt) >= CHANGED - ROUNDING)
        yield cases[rows], np.round(dealt[rows, deals], DIGITS), weights[rows, deals]


def _deal_passes(scores: Scores, n: int) -> tuple[Scores, Scores]:
    moves, weights = _passes(n, scores.shape[1] - n)
    n_passed = scores.sum(axis=1).astype(np.intp)
    return moves[n_passed], weights[n_passed]


@cache
def _passes(n: int, n_too: int) -> tuple[Scores, Scores]:
    """Return, by passes of both sides and of the candidate, how far the case moves and its probability."""
    passed, theirs = np.arange(n + n_too + 1)[:, None], np.arange(n_too + 1)
    ways = [
        [math.comb(all_, own) * math.comb(n + n_too - all_, n_too - own) for own in range(n_too + 1)]
        for all_ in range(n + n_too + 1)
    ]
    every = math.comb(n + n_too, n_too)
    weights = np.array([[way / every for way in row] for row in ways])  # 0 where it cannot be
    return theirs / n_too - (passed - theirs) / n, weights


def _deal_graded(scores: Scores, moves: Scores, n: int) -> tuple[Scores, Scores]:
    n_too = scores.shape[1] - n
    theirs = scores @ _labels(n, n_too)
    dealt = theirs / n_too - (scores.sum(axis=1)[:, None] - theirs) / n
    if math.comb(n + n_too, n) > GRADED_DEALS:
        # What really was is one of the drawn deals; where neither side is smaller, each stands with its mirror.
        dealt = np.column_stack([moves, dealt])
        dealt = np.column_stack([dealt, -dealt]) if n == n_too else dealt
    return dealt, np.full(dealt.shape, 1 / dealt.shape[1])


@cache
def _labels(n: int, n_too: int) -> Scores:
    """Return 0/1 of shape [n + n_too, deals]: scores given to the candidate, in all ways if they are few."""
    n_all, smaller = n + n_too, min(n, n_too)
    if math.comb(n_all, n) > GRADED_DEALS:
        drawn = deal_labels(np.random.default_rng(DEALING_SEED), n_all, smaller, GRADED_DEALS).T
    else:
        drawn = np.array([np.isin(range(n_all), way) for way in combinations(range(n_all), smaller)], np.float64).T
    return drawn if n_too == smaller else 1 - drawn


def _largest_first(cases: Cases, sizes: Scores) -> Cases:
    """Return the cases sorted by size, largest first; ties stay in order."""
    ordered: Cases = cases[np.argsort(-np.round(sizes[cases], DIGITS), kind="stable")]
    return ordered


class ResultsChange(NamedTuple):
    """at: the first run after the change; is_pass: the result of every repeat since.

    chance: of as many equal runs by chance, if each were as likely as a repeat before the change.
    """

    at: int
    is_pass: bool
    chance: float


def find_lasting_change(runs: Sequence[Sequence[bool]]) -> ResultsChange | None:
    """Return the change after which every repeat passes or every repeat fails; None if there is none.

    runs: whether each repeat passed, oldest run first; no run is empty. Repeats of a run may be copies, so a run
    counts once in `chance`.
    """
    if not runs or len(set(runs[-1])) > 1:
        return None
    is_pass = runs[-1][0]
    at = next((place + 1 for place in reversed(range(len(runs))) if set(runs[place]) != {is_pass}), 0)
    if at == 0:
        return None
    before = [result for run in runs[:at] for result in run]
    rate = (before.count(is_pass) + 1) / (len(before) + 2)
    return ResultsChange(at, is_pass, rate ** (len(runs) - at))
