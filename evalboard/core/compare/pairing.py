"""Pair the responses of two runs, and weigh the pairs.

A case's scored repeats on each side share [0, 1) equally; two repeats are a pair where their pieces overlap, and
the overlap is the pair's weight. So the weighted sum of score differences is exactly the difference of the two means,
with any numbers of repeats, and counts, case rows and ledger rest on the same pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare.divergence import Kind

PAIR_KINDS: tuple[Kind, ...] = ("identical", "drift_only", "flipped", "text_only")

Bools = NDArray[np.bool_]
Indexes = NDArray[np.int64]
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Pairing:
    """All pairs of two runs, ordered by case, then baseline repeat, then candidate repeat.

    cases, baseline_repeats, candidate_repeats: int64[m], indexes from 0. A pair's weight is the exact fraction
    numerators / denominators, int64[m]; a case's weights sum to 1.
    missing_*: likewise int64[x], the pairs that would stand there if a score were not missing; they have no weight.
    n_cases: the suite's; is_paired: bool[n_cases], whether a case has a score on both sides. is_straight: every repeat
    of every case is paired with the other side's repeat of the same place.
    """

    cases: Indexes
    baseline_repeats: Indexes
    candidate_repeats: Indexes
    numerators: Indexes
    denominators: Indexes
    missing_cases: Indexes
    missing_baseline_repeats: Indexes
    missing_candidate_repeats: Indexes
    is_paired: Bools
    is_straight: bool

    def __len__(self) -> int:
        return len(self.cases)

    def take_baseline(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return [m, …], what the baseline's response of each pair has. values: [n_cases, a, …]."""
        return self._take(values, self.baseline_repeats)

    def take_candidate(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return [m, …], what the candidate's response of each pair has. values: [n_cases, b, …]."""
        return self._take(values, self.candidate_repeats)

    def _take(self, values: NDArray[Any], repeats: Indexes) -> NDArray[Any]:
        # Of two whole runs, the most frequent and the largest case, nothing is copied.
        return values.reshape(-1, *values.shape[2:]) if self.is_straight else values[self.cases, repeats]

    @property
    def n_cases(self) -> int:
        return len(self.is_paired)


def pair_runs(baseline: Bools, candidate: Bools) -> Pairing:
    """Pair two runs by which repeats have a score: bool[n_cases, a] and bool[n_cases, b]."""
    if len(baseline) != len(candidate):
        raise ValueError("both sides must have the same cases")
    patterns, members = _patterns(np.concatenate([baseline, candidate], axis=1))
    is_straight = baseline.shape == candidate.shape and bool(baseline.all() and candidate.all())
    parts, missing = [_for_each(_NONE, np.zeros((0, 4), np.int64))], [_for_each(_NONE, np.zeros((0, 2), np.int64))]
    is_paired = np.zeros(len(baseline), np.bool_)
    for pattern, cases in zip(patterns, members, strict=True):
        has, has_too = pattern[: baseline.shape[1]], pattern[baseline.shape[1] :]
        rows, lost = _pairs_of(has, has_too)
        parts.append(_for_each(cases, rows))
        missing.append(_for_each(cases, lost))
        is_paired[cases] = len(rows) > 0
    cases, repeats, repeats_too, numerators, denominators = _in_order(parts)
    lost_cases, lost_repeats, lost_repeats_too = _in_order(missing)
    return Pairing(
        cases=cases,
        baseline_repeats=repeats,
        candidate_repeats=repeats_too,
        numerators=numerators,
        denominators=denominators,
        missing_cases=lost_cases,
        missing_baseline_repeats=lost_repeats,
        missing_candidate_repeats=lost_repeats_too,
        is_paired=is_paired,
        is_straight=is_straight,
    )


def count_pairs(pairing: Pairing, kinds: NDArray[np.uint8], is_score_changed: Bools) -> dict[str, int]:
    """Count the pairs. kinds: uint8[m], indexes into PAIR_KINDS; is_score_changed: bool[m].

    The four kinds and `missing` are all there are; `score_changed` cuts across them. n_cases_missing: cases without a
    score on one side; they are in no mean and not in the ledger.
    """
    numbers = np.bincount(kinds, minlength=len(PAIR_KINDS)).tolist()
    return {
        **dict(zip(PAIR_KINDS, numbers, strict=True)),
        "missing": len(pairing.missing_cases),
        "score_changed": int(np.count_nonzero(is_score_changed)),
        "n_cases_missing": int(np.count_nonzero(~pairing.is_paired)),
    }


def _overlaps(a: int, b: int) -> list[tuple[int, int, int]]:
    """Return up to a + b − 1 of (r, s, overlap of piece r of a and piece s of b), in units of 1 / (a · b)."""
    overlaps, r, s, at = [], 0, 0, 0
    while r < a and s < b:
        end = min((r + 1) * b, (s + 1) * a)
        overlaps.append((r, s, end - at))
        at = end
        r, s = r + (end == (r + 1) * b), s + (end == (s + 1) * a)
    return overlaps


def _pairs_of(has: Bools, has_too: Bools) -> tuple[Indexes, Indexes]:
    """Return int64[p, 4], (r, s, weight) of a pattern of scores, and int64[x, 2], (r, s) without a score."""
    repeats, repeats_too = np.flatnonzero(has), np.flatnonzero(has_too)
    size = len(repeats) * len(repeats_too)
    rows = [(repeats[r], repeats_too[s], w, size) for r, s, w in _overlaps(len(repeats), len(repeats_too))]
    lost = [(r, s) for r, s, _ in _overlaps(len(has), len(has_too)) if not (has[r] and has_too[s])]
    return np.array(rows, np.int64).reshape(-1, 4), np.array(lost, np.int64).reshape(-1, 2)


def _patterns(has: Bools) -> tuple[Bools, Sequence[Indexes]]:
    """Return the different rows, and for each the cases that have it."""
    if has.all():
        return has[:1], [np.arange(len(has))][: len(has)]
    packed = np.packbits(has, axis=1)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(which, kind="stable")
    return has[first], np.split(order, np.cumsum(np.bincount(which))[:-1])


def _for_each(cases: Indexes, rows: Indexes) -> list[Indexes]:
    """Return the columns of every row for every case, the case first: int64[len(cases) · len(rows)] each."""
    return [np.repeat(cases, len(rows)), *(np.tile(column, len(cases)) for column in rows.T)]


def _in_order(parts: Sequence[Sequence[Indexes]]) -> list[Indexes]:
    """Return the columns of all parts, ordered by case; each part's rows keep their order."""
    parts = [part for part in parts if len(part[0])] or parts[:1]
    if len(parts) == 1:  # nearly always
        return list(parts[0])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return [column[order] for column in columns]
