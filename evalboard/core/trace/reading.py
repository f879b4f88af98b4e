"""Traces of many blocks in one go: what must be read of each block, and the traces as columns."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from evalboard.core.trace import directory, parts
from evalboard.core.trace.trace_columns import TraceColumns


class BlockPiece(NamedTuple):
    """Bytes of a block: which of the blocks, the first byte, and how many."""

    block: int
    offset: int
    size: int


class Reading:
    """Some traces of many blocks: `pieces` are the bytes to read, `columns` decodes them.

    starts: the first bytes of each block, as many as `start_size` says. places: (which of the blocks, slot) of each
    trace. Raises TraceDamaged for a directory that is damaged or impossible, and for a slot that does not exist.
    """

    def __init__(self, starts: Sequence[bytes], places: Sequence[tuple[int, int]]) -> None:
        blocks, slots = np.array(places, np.int64).reshape(-1, 2).T
        self._table = directory.read_directories(starts)
        self._rows = self._table.rows(blocks, slots)
        self._parts = self._table.parts_of(self._rows)

    @cached_property
    def pieces(self) -> list[BlockPiece]:
        """Return the parts of blocks that contain the traces."""
        blocks = self._table.blocks_of(self._parts)
        offsets, sizes = self._table.part_offsets[self._parts], self._table.part_sizes[self._parts]
        return [BlockPiece(*each) for each in zip(blocks.tolist(), offsets.tolist(), sizes.tolist(), strict=True)]

    def columns(self, pieces: Sequence[bytes]) -> TraceColumns:
        """Return the traces, in the order of their places, from the bytes of each piece.

        Raises TraceDamaged unless each trace is what was stored.
        """
        return parts.read_parts(self._table, self._rows, self._parts, pieces)
