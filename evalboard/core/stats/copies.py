"""Tell which answers are samples and which repeat an earlier answer (docs/verdict.md, Copies).

A prefix cache, a response cache or the same batch may return an earlier answer instead of a new one. Equal answers
alone prove nothing, since honest repeats of a stable case are equal. So whole repeats are judged (`effective_draws`),
for noise, marks and verdicts; the test that compares two computations also has the other side's answers of each case
(`find_samples`).
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.run import Draws
from evalboard.core.stats.live_answers import COPIED, Bools, Marks, count_draws, is_left_out, make_mark

MIN_AGREEMENT = 0.995  # share of cases in which copies give one answer
MAX_COPY_CHANCE = 0.01  # of the sides without copies, at most this share has some called so
MIN_FIRST_ALONE = 2  # cases in which the first repeat alone differs, so that the others are taken for copies
MAX_JUDGED = 1000  # cases whose repeats differ; more add nothing to the chance

Digests = NDArray[np.uint64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class SideAnswers:
    """The answers of one side, by case and repeat.

    texts, traces: uint64[n, k, 2], digests, zeros where missing. is_there: bool[n, k]. marks: uint8[n, k], as
    live_answers has them. is_steady: of a batch class that gives the same bits each time. find_company: of our own
    engine, returns what stands for the batches of each repeat; None where the server is not ours. usual: uint64[n, m,
    2], digests of the texts that independent runs of the same bucket gave; zeros where missing.
    """

    texts: Digests
    traces: Digests
    is_there: Bools
    marks: Marks
    draws: Draws
    is_steady: bool
    find_company: Callable[[], Sequence[Hashable]] | None = None
    usual: Digests | None = None


@dataclass(frozen=True, eq=False)
class EffectiveDraws:
    """The classified answers of one side.

    marks: uint8[n, k], those given and `copies` on each answer that is an earlier one given again. is_one_answer: all
    repeats are one answer given again, and no independent run shows that it is the usual one. does_first_differ:
    the later repeats are copies of each other, and the first is none of them.
    """

    marks: Marks
    is_there: Bools
    is_one_answer: bool = False
    does_first_differ: bool = False

    @property
    def n_draws(self) -> float:
        """The draws of a case: the harmonic mean over the cases that have one."""
        return count_draws(self.is_there & ~is_left_out(self.marks))


def effective_draws(side: SideAnswers) -> EffectiveDraws:
    """Tell which answers of a side are draws.

    All are where the batch class is steady, since what is served is what is judged; and where tokens are drawn, as each
    call has a seed of its own. On our own engine every repeat was computed, and counts if its batches were others.
    Elsewhere repeats are copies if they agree in nearly all cases while other pairs of repeats agree clearly less, or
    if all of them are equal, or all but the first. Where an independent run gave every one of these answers too, the
    repeats count. Case by case they may not: cases that it did not move would look steadier than they are.
    """
    is_fresh = side.is_there & ~is_left_out(side.marks)
    whole = np.flatnonzero(2 * np.count_nonzero(is_fresh, axis=0) > len(is_fresh))
    if side.draws.is_sampled or side.is_steady or len(whole) < 2:
        return EffectiveDraws(side.marks, side.is_there)
    codes = _number_answers(side, is_fresh)
    judged = codes[is_fresh[:, whole].all(axis=1)][:, whole]
    groups = [whole[list(group)] for group in _find_groups(judged, side.find_company)]
    is_copy = np.zeros(codes.shape, np.bool_)
    for group in groups:
        for place, repeat in enumerate(group[1:].tolist(), 1):
            given = (codes[:, group[:place]] == codes[:, [repeat]]) & is_fresh[:, group[:place]]
            is_copy[:, repeat] = given.any(axis=1) & is_fresh[:, repeat]
    is_one = any(len(group) == len(whole) for group in groups)
    if side.usual is not None:
        is_usual: Bools = (side.texts[:, :, None] == side.usual[:, None]).all(axis=3).any(axis=2)
        if (is_usual | ~is_copy).all():
            is_copy[:] = False
    marks = side.marks | np.where(is_copy, np.uint8(make_mark([COPIED])), np.uint8(0))
    return EffectiveDraws(
        marks,
        side.is_there,
        is_one_answer=is_one and bool(is_copy.any()),
        does_first_differ=bool(is_copy.any()) and any(group.tolist() == whole[1:].tolist() for group in groups),
    )


def find_samples(are_alike: Bools, n_ours: int) -> Bools:
    """Return bool[n, k]: which answers of a case count when the two sides' computations are compared.

    That test uses distances between answers, not how often they agree. So it judges each case separately, with the
    other side as the independent run: an answer that one side gave repeatedly and the other never gave counts once. If
    both gave it, it is the usual answer, and all its repeats count. are_alike: as in `average_distances`.
    """
    k = are_alike.shape[1]
    is_ours = np.arange(k) < n_ours
    is_other_side = is_ours[:, None] != is_ours
    is_first = np.argmax(are_alike & ~is_other_side, axis=2) == np.arange(k)
    counts: Bools = is_first | (are_alike & is_other_side).any(axis=2)
    return counts


def _number_answers(side: SideAnswers, is_fresh: Bools) -> Codes:
    """Return int64[n, k]: for each answer the first repeat of its case that gave it.

    By bits where all answers of a case have logprobs, else by texts.
    """
    has_bits: Bools = np.all(side.traces.any(axis=2) | ~is_fresh, axis=1)
    keys = np.where(has_bits[:, None, None], side.traces, side.texts)
    codes = np.broadcast_to(np.arange(keys.shape[1]), keys.shape[:2]).copy()
    for repeat in range(keys.shape[1] - 1, 0, -1):
        for earlier in range(repeat - 1, -1, -1):
            is_same = (keys[:, repeat] == keys[:, earlier]).all(axis=1) & is_fresh[:, earlier]
            codes[is_same, repeat] = earlier
    return codes


def _find_groups(codes: Codes, find_company: Callable[[], Sequence[Hashable]] | None) -> list[tuple[int, ...]]:
    """Return the groups of repeats that are copies of each other, the largest that there are."""
    n_cases, k = codes.shape
    if not n_cases:
        return []
    apart = np.array([[np.count_nonzero(ours != theirs) for theirs in codes.T] for ours in codes.T])
    limit = (1 - MIN_AGREEMENT) * n_cases
    if find_company is not None:
        if (apart + np.diag(np.full(k, n_cases + 1))).min() > limit:
            return []
        company = find_company()
        apart = np.where([[ours == theirs for theirs in company] for ours in company], apart, n_cases + 1)
        return [group for group in _merge(apart, limit) if len(group) > 1]
    is_apart: Bools = np.any(codes != codes[:, :1], axis=1)
    differing = codes[is_apart]
    if not len(differing):
        return [tuple(range(k))]
    differing = differing[:: max(len(differing) // MAX_JUDGED, 1)][:MAX_JUDGED]
    later = tuple(range(1, k))
    if k > MIN_FIRST_ALONE and len(differing) >= MIN_FIRST_ALONE and not apart[1:, 1:].any():
        return [later]
    steps = [group for group in _merge(apart, limit, every=True) if _chance(differing, group) < MAX_COPY_CHANCE]
    if steps:
        return [group for group in steps if not any(set(group) < set(other) for other in steps)]
    return _find_two_pairs(apart, differing, limit)


def _merge(apart: Codes, limit: float, *, every: bool = False) -> list[tuple[int, ...]]:
    """Merge the nearest repeats into groups in which no two differ in more than `limit` cases.

    Return the final groups; with `every`, all groups made on the way.
    """
    groups: list[tuple[int, ...]] = [(repeat,) for repeat in range(len(apart))]
    made: list[tuple[int, ...]] = []
    while len(groups) > 1:
        pairs = [(ours, theirs) for at, ours in enumerate(groups) for theirs in groups[at + 1 :]]
        ours, theirs = min(pairs, key=lambda pair: apart[np.ix_(*pair)].max())
        if apart[np.ix_(ours, theirs)].max() > limit:
            break
        groups = [group for group in groups if group not in (ours, theirs)] + [tuple(sorted((*ours, *theirs)))]
        made.append(groups[-1])
    return made if every else groups


def _chance(codes: Codes, group: tuple[int, ...]) -> float:
    """Return the chance that any group of this size agrees as often if answers are permuted over repeats.

    codes: of the cases whose repeats differ. Each case's answers are dealt to the repeats anew, in every way there is:
    the number of cases in which the group disagrees is then a sum of independent events. Times the number of groups.
    """
    k, size = codes.shape[1], len(group)
    ways = np.array([math.comb(n, size) for n in range(k + 1)], np.float64)
    agrees = ways[_count_alike(codes)].sum(axis=1) / ways[k]
    chosen = codes[:, group]
    n_apart = int(np.count_nonzero((chosen != chosen[:, :1]).any(axis=1)))
    return float(_few_apart(agrees, n_apart) * ways[k])


def _find_two_pairs(apart: Codes, codes: Codes, limit: float) -> list[tuple[int, ...]]:
    """Return the two nearest pairs of repeats if both agree more than any two pairs by chance.

    Two pairs show copies by half of the cases that one pair takes. The chance is as in `_chance`, over all two pairs.
    """
    k = len(apart)
    pairs: list[tuple[int, ...]] = sorted(combinations(range(k), 2), key=lambda pair: apart[pair])
    chosen = [pairs[0], *(pair for pair in pairs if not set(pair) & set(pairs[0]))][:2]
    if len(chosen) < 2 or apart[chosen[1]] > limit:
        return []
    n_pairs, n_others = (
        np.array([math.comb(max(n - gone, 0), 2) for n in range(k + 1)], np.float64) for gone in (0, 2)
    )
    ways = n_pairs[_count_alike(codes)]
    both = (ways.sum(axis=1) ** 2 - (ways**2).sum(axis=1) + (ways * n_others[_count_alike(codes)]).sum(axis=1)) / 2
    n_ways = n_pairs[k] * n_others[k] / 2
    is_apart = np.any([codes[:, ours] != codes[:, theirs] for ours, theirs in chosen], axis=0)
    return chosen if _few_apart(both / n_ways, int(is_apart.sum())) * n_ways < MAX_COPY_CHANCE else []


def _count_alike(codes: Codes) -> Codes:
    """Return int64[n, a]: how many repeats of a case gave each of its answers, which codes number."""
    return np.stack([np.count_nonzero(codes == answer, axis=1) for answer in range(codes.max() + 1)], axis=1)


def _few_apart(agrees: NDArray[np.float64], n_apart: int) -> float:
    """Return the chance that at most n_apart cases differ, each agreeing with its own probability."""
    chances = np.zeros(n_apart + 1)
    chances[0] = 1.0
    for agree in agrees.tolist():
        chances[1:] = chances[1:] * agree + chances[:-1] * (1 - agree)
        chances[0] *= agree
    return float(chances.sum())
