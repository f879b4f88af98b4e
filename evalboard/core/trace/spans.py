"""Read single traces out of the columns of a block of version 1 without building their neighbours.

The planes are cut where the directory says that a trace's positions lie; docs/trace-format.md gives their order. Only
what stands in the block's order of exceptions (strays, misfits) is counted over the whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core.errors import TraceDamaged
from evalboard.core.trace import gaps
from evalboard.core.trace.cursor import AGAIN, Cursor

Plane = NDArray[np.uint8]
Words = NDArray[np.uint32]
Counts = NDArray[np.int64]

STRAY = 255  # the rank of a chosen token that no alternative repeats bit for bit
PLAIN = 31  # in the grid field: logprobs below the top one are stored whole
HAS_RANKS = 0x80  # else every chosen token is rank 0


@dataclass(frozen=True, slots=True)
class TraceTable:
    """All positions of a trace, ids raised by one, logprobs as bits.

    token_ids, logprobs: uint32[n]. alternative_ids, alternative_logprobs: uint32[n, k]. prompt_token_ids: uint32[m].
    """

    token_ids: Words
    logprobs: Words
    alternative_ids: Words
    alternative_logprobs: Words
    prompt_token_ids: Words


@dataclass(frozen=True, slots=True)
class _Columns:
    """All planes of a block, each list the highest byte first; exceptions joined, with the places they belong to."""

    grid: int
    ranks: Plane
    top: list[Plane]
    lower: list[Plane]
    ids: list[Plane]
    stray_places: NDArray[np.intp]
    stray_ids: Words
    stray_logprobs: Words
    misfit_places: NDArray[np.intp]
    misfits: Words
    prompt: list[Plane]


def read_spans(
    columns: Cursor, flags: int, n: Sequence[int], k: Sequence[int], n_prompt: Sequence[int], slots: Sequence[int]
) -> list[TraceTable]:
    """Return one table for each of the slots; n, k and n_prompt are those of every trace of the block.

    Raises TraceDamaged for columns that no table gives, as far as the slots show it.
    """
    lengths, widths = np.array(n, np.int64), np.array(k, np.int64)
    ranks = np.arange(int(widths[lengths > 0].max(initial=0)))
    listed = lengths[:, None] * (widths[:, None] > ranks)  # [traces, widest k]: cells of each trace at each rank
    block = _read(columns, flags, int(lengths.sum()), listed.sum(axis=0), sum(n_prompt))
    starts = np.cumsum(listed, axis=0) - listed + np.cumsum(listed.sum(axis=0)) - listed.sum(axis=0)
    positions, prompts = np.cumsum(lengths) - lengths, np.cumsum(n_prompt) - np.array(n_prompt, np.int64)
    return [
        _table(
            block, int(positions[slot]), n[slot], starts[slot, : k[slot]].tolist(), int(prompts[slot]), n_prompt[slot]
        )
        for slot in slots
    ]


def _read(columns: Cursor, flags: int, n: int, listed: Counts, n_prompt: int) -> _Columns:
    grid, width = _form(flags)
    n_cells, n_top = int(listed.sum()), int(listed[:1].sum())
    n_lower, lower_width = n_cells - n_top, 4 if grid == PLAIN else 3
    ranks = columns.planes(1, n)[0] if flags & HAS_RANKS else np.zeros(n, np.uint8)
    top, lower, ids = columns.planes(1, n_top), columns.planes(1, n_lower), columns.planes(width - 1, n_cells)
    top += columns.planes(3, n_top)
    lower += columns.planes(lower_width - 1, n_lower)
    ids += columns.planes(1, n_cells)
    stray_places = np.flatnonzero(ranks == STRAY) if flags & HAS_RANKS else np.zeros(0, np.intp)
    stray_ids, stray_logprobs = (join(columns.planes(size, len(stray_places))) for size in (width, 4))
    misfit_places = np.zeros(0, np.intp)
    if grid != PLAIN:
        misfit_places = np.flatnonzero(lower[0] & lower[1] & lower[2] == 0xFF)
    return _Columns(
        grid=grid,
        ranks=ranks,
        top=top,
        lower=lower,
        ids=ids,
        stray_places=stray_places,
        stray_ids=stray_ids,
        stray_logprobs=stray_logprobs,
        misfit_places=misfit_places,
        misfits=join(columns.planes(4, len(misfit_places))),
        prompt=columns.planes(width, n_prompt),
    )


def _table(block: _Columns, start: int, n: int, cells: Sequence[int], prompt_start: int, n_prompt: int) -> TraceTable:
    """Return the table of n positions from `start` on; `cells` says where their cells of each rank begin."""
    n_top = len(block.top[0])
    ids, logprobs = np.zeros((n, len(cells)), np.uint32), np.zeros((n, len(cells)), np.uint32)
    for rank, at in enumerate(cells):
        ids[:, rank] = _joined(block.ids, at, n)
        if rank == 0:
            logprobs[:, 0] = _joined(block.top, at, n)
        else:
            logprobs[:, rank] = _below(block, logprobs[:, 0].copy(), at - n_top)
    ranks = block.ranks[start : start + n]
    if cells and not ranks.any():  # nearly always
        token_ids, own_logprobs = ids[:, 0], logprobs[:, 0]
    else:
        first, last = np.searchsorted(block.stray_places, (start, start + n))
        token_ids = _chosen(ranks, ids, block.stray_ids[first:last])
        own_logprobs = _chosen(ranks, logprobs, block.stray_logprobs[first:last])
    return TraceTable(
        token_ids=token_ids,
        logprobs=own_logprobs,
        alternative_ids=ids,
        alternative_logprobs=logprobs,
        prompt_token_ids=_joined(block.prompt, prompt_start, n_prompt),
    )


def _below(block: _Columns, tops: Words, at: int) -> Words:
    """Return the logprobs of one rank from 1 on, whose lower cells begin at `at`."""
    lower = _joined(block.lower, at, len(tops))
    if block.grid == PLAIN:
        return lower
    whole = gaps.take_steps(tops, lower, block.grid)
    if len(block.misfit_places):
        first, last = np.searchsorted(block.misfit_places, (at, at + len(tops)))
        whole[block.misfit_places[first:last] - at] = block.misfits[first:last]
    return whole


def _joined(planes: Sequence[Plane], start: int, n: int) -> Words:
    return join([plane[start : start + n] for plane in planes])


def _form(flags: int) -> tuple[int, int]:
    """Grid, and bytes of an id, as the flag byte gives them. Raises TraceDamaged for a grid that there is not."""
    grid, width = flags & 0x1F, (flags >> 5 & 3) + 1
    if grid != PLAIN and grid > gaps.FINEST:
        raise TraceDamaged(f"The trace block holds an impossible grid. {AGAIN}")
    return grid, width


def _chosen(ranks: Plane, cells: Words, strays: Words) -> Words:
    """Return uint32[n]: the cell of each position's rank, or the next stray."""
    is_stray = ranks == STRAY
    if (~is_stray & (ranks >= cells.shape[1])).any():
        raise TraceDamaged(f"The trace block names an alternative that it does not hold. {AGAIN}")
    chosen = np.zeros(len(ranks), np.uint32)
    chosen[is_stray] = strays
    rows = np.flatnonzero(~is_stray)
    chosen[rows] = cells[rows, ranks[rows]]
    return chosen


def join(planes: Sequence[Plane]) -> Words:
    """Return the values that byte planes, the highest first, are cut from."""
    whole = np.zeros((len(planes[0]), 4), np.uint8)
    for byte, plane in enumerate(reversed(planes)):
        whole[:, byte] = plane
    return whole.view("<u4").ravel().astype(np.uint32, copy=False)
