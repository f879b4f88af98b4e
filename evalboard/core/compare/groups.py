"""The pairs of a comparison that must be looked at, each different one once.

Five repeats that refer to one stored trace make one group: what differs is judged for the first of its pairs and
holds for all. Within a case, pairs are alike when both sides' traces, texts, buckets and scores are the same; prompt,
limits and settings then are the same as well, because case and bucket decide them. Where tokens are drawn, each repeat
was sent a seed of its own, and only pairs of the same repeats are alike.
"""

from dataclasses import dataclass, replace

import numpy as np

from evalboard.core.compare.comparison import MatchedRuns
from evalboard.core.compare.pairing import Pairing, pair_runs
from evalboard.core.compare.sides import Bools, Digests, Indexes, Side
from evalboard.core.trace import differ


@dataclass(frozen=True, eq=False)
class Groups:
    """All pairs that differ or are missing, by group; groups in the order of their first pair's case.

    cases, baseline_repeats, candidate_repeats: int64[p], positions in the columns. members: int64[p], pairs sorted by
    group; group g has members[starts[g]:starts[g + 1]], the first of them standing for all. pair_indexes: int64[p], a
    pair's place in the pairing, -1 where a side is missing. is_texted: bool[p], whether both are there and their texts
    differ; is_traced: whether their traces or texts do; has_other_trace: whether their traces do.
    is_unread: bool[m] over the pairing: pairs with other traces or texts. is_scored: whether both sides have scores.
    """

    cases: Indexes
    baseline_repeats: Indexes
    candidate_repeats: Indexes
    members: Indexes
    starts: Indexes
    pair_indexes: Indexes
    is_traced: Bools
    is_texted: Bools
    has_other_trace: Bools
    is_unread: Bools
    is_scored: bool

    def __len__(self) -> int:
        return len(self.starts) - 1

    def members_of(self, group: int) -> Indexes:
        return self.members[self.starts[group] : self.starts[group + 1]]

    def firsts(self, groups: slice) -> Indexes:
        """Return the representative pair of some groups."""
        return self.members[self.starts[:-1][groups]]


def match_sides(baseline: Side, candidate: Side) -> MatchedRuns:
    """Pair the repeats of both sides: their scores, or their responses where a side has no score at all."""
    has_scores = [~np.isnan(side.scores) for side in (baseline, candidate)]
    if not all(has_score.any() for has_score in has_scores):
        has_scores = [baseline.is_there, candidate.is_there]
    pairs = pair_runs(*has_scores)
    is_mixed = any(len(side.bucket_ids) > 1 for side in (baseline, candidate))
    has_other_text = _differ_in_pairs(pairs, baseline.texts, candidate.texts)
    return MatchedRuns(
        pairs, baseline.scores, candidate.scores, (baseline.alike, candidate.alike), is_mixed, has_other_text
    )


def find_groups(
    ours: Side, theirs: Side, matched: MatchedRuns, *, is_one_vocabulary: bool = True, are_texts_all: bool = False
) -> Groups:
    """Find everything that is not the same to the bit with the same score.

    is_one_vocabulary: an id is one token on both sides. Else equal digests of traces say nothing. are_texts_all: traces
    are not compared, as prompts are judged.
    """
    pairs = matched.pairing
    if are_texts_all:
        ours, theirs = (replace(side, traces=np.zeros_like(side.traces)) for side in (ours, theirs))
        is_one_vocabulary = True
    is_unread = _differ_in_pairs(pairs, ours.traces, theirs.traces) | matched.has_other_text
    if not is_one_vocabulary:
        is_unread |= _differ_in_pairs(pairs, ours.traces, theirs.texts)  # those that have tokens
    wanted = np.flatnonzero(is_unread | (matched.moves != 0))
    n_missing = len(pairs.missing_cases)
    cases = np.concatenate([pairs.cases[wanted], pairs.missing_cases])
    repeats = np.concatenate([pairs.baseline_repeats[wanted], pairs.missing_baseline_repeats])
    repeats_too = np.concatenate([pairs.candidate_repeats[wanted], pairs.missing_candidate_repeats])
    place, place_too = (cases, repeats), (cases, repeats_too)
    # Of a log both may be there though a score is missing.
    is_there = ours.is_there[place] & theirs.is_there[place_too]
    is_texted = differ(ours.texts[place], theirs.texts[place_too]) & is_there
    has_other_trace = differ(ours.traces[place], theirs.traces[place_too])
    has_other_trace = (has_other_trace if is_one_vocabulary else np.ones_like(has_other_trace)) & is_there
    members, starts = _group(_keys(ours, cases, repeats), _keys(theirs, cases, repeats_too), cases)
    return Groups(
        cases=cases,
        baseline_repeats=repeats,
        candidate_repeats=repeats_too,
        members=members,
        starts=starts,
        pair_indexes=np.concatenate([wanted, np.full(n_missing, -1)]),
        is_traced=has_other_trace | is_texted,
        is_texted=is_texted,
        has_other_trace=has_other_trace,
        is_unread=is_unread,
        is_scored=matched.is_scored,
    )


def _differ_in_pairs(pairs: Pairing, ours: Digests, theirs: Digests) -> Bools:
    """Return bool[m], in which pairs the digests of the sides differ: uint64[n, a, 2] and uint64[n, b, 2]."""
    if pairs.is_straight:  # nothing is copied
        return differ(ours, theirs).reshape(-1)
    return differ(pairs.take_baseline(ours), pairs.take_candidate(theirs))


def _keys(side: Side, cases: Indexes, repeats: Indexes) -> Indexes:
    """Return int64[p, 7]: all of one side that a pair's cause depends on. A missing response is unique."""
    place = (cases, repeats)
    scores = side.scores[place]
    key = np.column_stack(
        [
            side.traces[place].view(np.int64),
            side.texts[place].view(np.int64),
            side.buckets[place],
            scores.view(np.int64),
            repeats if side.draws.may_sample else np.zeros_like(repeats),
        ]
    )
    is_missing = ~side.is_there[place]
    key[is_missing, 0] = repeats[is_missing]
    return key


def _group(ours: Indexes, theirs: Indexes, cases: Indexes) -> tuple[Indexes, Indexes]:
    """Return (members, starts) of Groups: equal rows, in order of first appearance by case."""
    if not len(cases):
        return np.zeros(0, np.int64), np.zeros(1, np.int64)
    table = np.ascontiguousarray(np.column_stack([cases, ours, theirs]))
    rows = table.view(np.dtype((np.void, table.shape[1] * table.itemsize))).ravel()
    _, first, which = np.unique(rows, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.lexsort((first, cases[first]))] = np.arange(len(first))
    group = rank[which.ravel()]
    return np.argsort(group, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(group))])
