"""Lay many pairs of traces side by side, so that one pass over arrays measures all of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare.alignment import NEVER, SIDES, Bools, Positions, Shorter, align_by_bytes, share_tokens
from evalboard.core.trace import TokenTrace, TraceColumns, Vocabulary

Indexes = NDArray[np.int64]
Vocabularies = tuple[Vocabulary, Vocabulary]


@dataclass(frozen=True, eq=False)
class PairedRows:
    """p pairs: trace i of each side. A row is a position of a side's columns.

    baseline, candidate: the traces, a pair's ids in one numbering, which is their own unless it is approximate.
    baseline_rows, candidate_rows: int64[m], the rows that agree, pair after pair; those of pair i are from starts[i]
    to starts[i + 1], starts being int64[p + 1].
    parts_at: int64[p, 2], the position on each side where the tokens diverge, NEVER if they do not.
    shorter: of each pair, the side whose tokens all agree while the other side continues.
    is_approximate: bool[p], whether the tokens' bytes decided.
    """

    baseline: TraceColumns
    candidate: TraceColumns
    baseline_rows: Indexes
    candidate_rows: Indexes
    starts: Indexes
    parts_at: Indexes
    shorter: Sequence[Shorter | None]
    is_approximate: Bools

    def __len__(self) -> int:
        return len(self.parts_at)

    @property
    def baseline_positions(self) -> Positions:
        return self._positions(self.baseline, self.baseline_rows)

    @property
    def candidate_positions(self) -> Positions:
        return self._positions(self.candidate, self.candidate_rows)

    @property
    def flipped(self) -> Indexes:
        """The pairs whose tokens differ where they part."""
        is_ended = np.array([each is not None for each in self.shorter], np.bool_)
        return np.flatnonzero((self.parts_at[:, 0] != NEVER) & ~is_ended)

    def shared(self) -> tuple[TokenTrace, TokenTrace]:
        """Return the rows that agree, aligned, as one trace of each side."""
        return _rows_of(self.baseline, self.baseline_rows), _rows_of(self.candidate, self.candidate_rows)

    def _positions(self, columns: TraceColumns, rows: Indexes) -> Positions:
        return rows - np.repeat(columns.starts[:-1], np.diff(self.starts))


def lay_pairs(
    baseline: TraceColumns, candidate: TraceColumns, vocabularies: Sequence[Vocabularies | None] | None = None
) -> PairedRows:
    """Align pairs like `align`, or like `align_by_bytes` if a pair has two vocabularies."""
    starts, starts_too = baseline.starts, candidate.starts
    n_shared, has_flip = share_tokens(baseline.token_ids, candidate.token_ids, starts, starts_too)
    n, n_too = np.diff(starts), np.diff(starts_too)
    has_parted = has_flip | (n != n_too)
    shorter: list[Shorter | None] = [None] * len(n)
    for pair in np.flatnonzero(has_parted & ~has_flip).tolist():
        shorter[pair] = SIDES[0] if n[pair] < n_too[pair] else SIDES[1]
    begins = np.concatenate([[0], np.cumsum(n_shared)])
    rows = np.arange(begins[-1])
    laid = PairedRows(
        baseline=baseline,
        candidate=candidate,
        baseline_rows=rows + np.repeat(starts[:-1] - begins[:-1], n_shared),
        candidate_rows=rows + np.repeat(starts_too[:-1] - begins[:-1], n_shared),
        starts=begins,
        parts_at=np.repeat(np.where(has_parted, n_shared, NEVER)[:, None], 2, axis=1),
        shorter=shorter,
        is_approximate=np.zeros(len(n), np.bool_),
    )
    by_bytes = {pair: words for pair, words in enumerate(vocabularies or ()) if words is not None}
    return _lay_by_bytes(laid, by_bytes) if by_bytes else laid


def _lay_by_bytes(laid: PairedRows, vocabularies: dict[int, Vocabularies]) -> PairedRows:
    """Return the pairs, with those of two vocabularies aligned again, one by one."""
    sides = [_renumberable(side) for side in (laid.baseline, laid.candidate)]
    rows = [np.split(each, laid.starts[1:-1]) for each in (laid.baseline_rows, laid.candidate_rows)]
    parts_at, shorter, is_approximate = laid.parts_at.copy(), list(laid.shorter), laid.is_approximate.copy()
    for pair, words in vocabularies.items():
        alignment = align_by_bytes(laid.baseline.trace(pair), laid.candidate.trace(pair), *words)
        parts_at[pair], shorter[pair] = alignment.parts_at or NEVER, alignment.shorter
        is_approximate[pair] = True
        numbered = (alignment.baseline, alignment.candidate)
        positions = (alignment.baseline_positions, alignment.candidate_positions)
        for side, trace, agreeing, own in zip(sides, numbered, positions, rows, strict=True):
            start, end = side.starts[pair : pair + 2].tolist()
            side.token_ids[start:end] = trace.token_ids
            side.alternative_ids[start:end, : trace.k] = trace.alternative_ids
            own[pair] = agreeing + start
    return PairedRows(
        baseline=sides[0],
        candidate=sides[1],
        baseline_rows=np.concatenate(rows[0]),
        candidate_rows=np.concatenate(rows[1]),
        starts=np.concatenate([[0], np.cumsum([len(own) for own in rows[0]])]),
        parts_at=parts_at,
        shorter=shorter,
        is_approximate=is_approximate,
    )


def _renumberable(side: TraceColumns) -> TraceColumns:
    return replace(side, token_ids=side.token_ids.copy(), alternative_ids=side.alternative_ids.copy())


def _rows_of(columns: TraceColumns, rows: Indexes) -> TokenTrace:
    """Return some rows of the columns in their order."""
    wanted = slice(None) if len(rows) == len(columns.token_ids) else rows  # in order, so they are all of them
    return TokenTrace(
        columns.token_ids[wanted],
        columns.logprobs[wanted],
        columns.alternative_ids[wanted],
        columns.alternative_logprobs[wanted],
    )
