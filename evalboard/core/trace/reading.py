"""Traces of many blocks in one go: what must be read of each block, and the traces as columns."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from evalboard.core.trace import directory, parts, version1
from evalboard.core.trace.codec import block_version
from evalboard.core.trace.trace_columns import TraceColumns, join_columns, join_traces


class Piece(NamedTuple):
    """Bytes of a block: which of the blocks, the first byte, and how many; None for all there are."""

    block: int
    offset: int
    size: int | None


def start_size(start: bytes) -> int:
    """Return how many first bytes of a block say where its traces stand; `start` are some of them, 16 at the least.

    Raises TraceDamaged for what is no block that can be read.
    """
    return 0 if block_version(start) == version1.VERSION else directory.directory_size(start)


class Reading:
    """Some traces of many blocks: `pieces` says which bytes are to be read, `columns` makes the traces of them.

    starts: the first bytes of each block, as many as `start_size` says. places: (which of the blocks, slot) of each
    trace. Raises TraceDamaged for a directory that is damaged or impossible, and a slot that there is not.
    """

    def __init__(self, starts: Sequence[bytes], places: Sequence[tuple[int, int]]) -> None:
        is_older = np.array([block_version(start) == version1.VERSION for start in starts], np.bool_)
        blocks, slots = np.array(places, np.int64).reshape(-1, 2).T
        is_in_older = is_older[blocks]
        older = [(block, np.flatnonzero(blocks == block)) for block in np.unique(blocks[is_in_older]).tolist()]
        self._order = np.argsort(np.concatenate([np.flatnonzero(~is_in_older), *(at for _, at in older)]))
        self._older = [(block, slots[at].tolist()) for block, at in older]
        newer = np.flatnonzero(~is_older)
        self._table = directory.read_directories([starts[block] for block in newer.tolist()])
        self._rows = self._table.rows(np.searchsorted(newer, blocks[~is_in_older]), slots[~is_in_older])
        self._parts = self._table.parts_of(self._rows)
        self._blocks = newer[self._table.blocks_of(self._parts)]

    @cached_property
    def pieces(self) -> list[Piece]:
        """What the traces stand in: a part of a block, or all of one of version 1."""
        offsets, sizes = self._table.part_offsets[self._parts], self._table.part_sizes[self._parts]
        newer = zip(self._blocks.tolist(), offsets.tolist(), sizes.tolist(), strict=True)
        return [*(Piece(*each) for each in newer), *(Piece(block, 0, None) for block, _ in self._older)]

    def columns(self, pieces: Sequence[bytes]) -> TraceColumns:
        """Return the traces, in the order of their places, from the bytes of each piece.

        Raises TraceDamaged unless each trace is what was stored.
        """
        n_newer = len(self._parts)
        columns = parts.read_parts(self._table, self._rows, self._parts, pieces[:n_newer])
        if not self._older:
            return columns
        read = [
            version1.read_traces(data, slots) for data, (_, slots) in zip(pieces[n_newer:], self._older, strict=True)
        ]
        return join_columns([columns, join_traces([trace for traces in read for trace in traces])]).take(self._order)
