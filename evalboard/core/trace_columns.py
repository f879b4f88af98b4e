"""The positions of a block's traces, end to end, as byte columns; docs/trace-format.md gives their order.

A chosen token is nearly always one of the alternatives, so only its rank is stored; logprobs below the top one
become gaps; every number is cut into planes of its first, second ... byte, because like bytes compress together.
Ids are kept plus one, so that "no token" is 0. Logprobs are handled as bits, never as values.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core import gaps
from evalboard.core.cursor import AGAIN, Cursor
from evalboard.core.errors import TraceDamaged

Plane = NDArray[np.uint8]
Words = NDArray[np.uint32]

STRAY = 255  # the rank of a chosen token that no alternative repeats bit for bit
PLAIN = 31  # in the grid field: logprobs below the top one are stored whole
HAS_RANKS = 0x80  # else every chosen token is rank 0


@dataclass(frozen=True, slots=True)
class Table:
    """All positions of a block. Where `is_listed` is False a trace has no such rank, and the cell is 0.

    token_ids, logprobs: uint32[n]. alternative_ids, alternative_logprobs, is_listed: [n, widest k].
    prompt_token_ids: uint32, of all traces that keep them.
    """

    token_ids: Words
    logprobs: Words
    alternative_ids: Words
    alternative_logprobs: Words
    is_listed: NDArray[np.bool_]
    prompt_token_ids: Words


def write(table: Table) -> tuple[int, list[bytes]]:
    """The flag byte and the columns, in groups that compress well on their own."""
    ranks = _ranks(table)
    strays = ranks == STRAY
    grid, lower, misfits = _lower(table)
    ids = _by_rank(table.alternative_ids, table.is_listed)
    stray_ids = table.token_ids[strays]
    width = _width(ids, stray_ids, table.prompt_token_ids)
    top_planes = _planes(_by_rank(table.alternative_logprobs[:, :1], table.is_listed[:, :1]), 4)
    lower_planes = _planes(lower, 4 if grid == PLAIN else 3)
    id_planes = _planes(ids, width)
    exceptions = [*_planes(stray_ids, width), *_planes(table.logprobs[strays], 4), *_planes(misfits, 4)]
    groups = [
        [ranks] if ranks.any() else [],
        top_planes[:1],
        lower_planes[:1],
        id_planes[:-1],
        [*top_planes[1:], *lower_planes[1:], id_planes[-1], *exceptions],
        *([plane] for plane in _planes(table.prompt_token_ids, width)),
    ]
    flags = grid | (width - 1) << 5 | (HAS_RANKS if ranks.any() else 0)
    return flags, [b"".join(plane.tobytes() for plane in group) for group in groups]


def read(columns: Cursor, flags: int, is_listed: NDArray[np.bool_], n_prompt: int) -> Table:
    """The table that `write` was given. Raises TraceDamaged for columns that no table gives."""
    grid, width = form(flags)
    n, n_cells, n_top = len(is_listed), int(is_listed.sum()), int(is_listed[:, :1].sum())
    n_lower, lower_width = n_cells - n_top, 4 if grid == PLAIN else 3
    ranks = columns.planes(1, n)[0] if flags & HAS_RANKS else np.zeros(n, np.uint8)
    top, lower, ids = columns.planes(1, n_top), columns.planes(1, n_lower), columns.planes(width - 1, n_cells)
    top += columns.planes(3, n_top)
    lower += columns.planes(lower_width - 1, n_lower)
    ids += columns.planes(1, n_cells)
    n_strays = int(np.count_nonzero(ranks == STRAY))
    stray_ids = join(columns.planes(width, n_strays))
    stray_logprobs = join(columns.planes(4, n_strays))
    logprobs = np.zeros(is_listed.shape, np.uint32)
    logprobs[:, :1].T[is_listed[:, :1].T] = join(top)
    logprobs[:, 1:].T[is_listed[:, 1:].T] = _whole(join(lower), logprobs, is_listed, grid, columns)
    alternative_ids = np.zeros(is_listed.shape, np.uint32)
    alternative_ids.T[is_listed.T] = join(ids)
    return Table(
        token_ids=chosen(ranks, alternative_ids, stray_ids, is_listed),
        logprobs=chosen(ranks, logprobs, stray_logprobs, is_listed),
        alternative_ids=alternative_ids,
        alternative_logprobs=logprobs,
        is_listed=is_listed,
        prompt_token_ids=join(columns.planes(width, n_prompt)),
    )


def form(flags: int) -> tuple[int, int]:
    """Grid, and bytes of an id, as the flag byte gives them. Raises TraceDamaged for a grid that there is not."""
    grid, width = flags & 0x1F, (flags >> 5 & 3) + 1
    if grid != PLAIN and grid > gaps.FINEST:
        raise TraceDamaged(f"The trace block holds an impossible grid. {AGAIN}")
    return grid, width


def _ranks(table: Table) -> Plane:
    """uint8[n]: the first alternative that is the chosen token, bits and all; STRAY where none is."""
    ranks = np.full(len(table.token_ids), STRAY, np.uint8)
    for rank in reversed(range(table.is_listed.shape[1])):
        is_same = (
            (table.alternative_ids[:, rank] == table.token_ids)
            & (table.alternative_logprobs[:, rank] == table.logprobs)
            & table.is_listed[:, rank]
        )
        ranks[is_same] = rank
    return ranks


def chosen(ranks: Plane, cells: Words, strays: Words, is_listed: NDArray[np.bool_]) -> Words:
    """uint32[n]: the cell of each position's rank, or the next stray."""
    is_stray = ranks == STRAY
    if (~is_stray & (ranks >= is_listed.sum(axis=1))).any():
        raise TraceDamaged(f"The trace block names an alternative that it does not hold. {AGAIN}")
    chosen = np.zeros(len(ranks), np.uint32)
    chosen[is_stray] = strays
    rows = np.flatnonzero(~is_stray)
    chosen[rows] = cells[rows, ranks[rows]]
    return chosen


def _lower(table: Table) -> tuple[int, Words, Words]:
    """Grid, column and misfits of the logprobs from rank 1 on."""
    below = table.is_listed[:, 1:]
    logprobs = _by_rank(table.alternative_logprobs[:, 1:], below)
    found = gaps.find_steps(_tops(table.alternative_logprobs, below), logprobs)
    if found is None:
        return PLAIN, logprobs, logprobs[:0]
    return found.grid, found.steps, logprobs[found.steps == gaps.MISFIT]


def _whole(lower: Words, logprobs: Words, is_listed: NDArray[np.bool_], grid: int, columns: Cursor) -> Words:
    """The logprobs from rank 1 on; `logprobs` holds the top ones already, `columns` stands before the misfits."""
    if grid == PLAIN:
        return lower
    is_misfit = lower == gaps.MISFIT
    whole = gaps.take_steps(_tops(logprobs, is_listed[:, 1:]), lower, grid)
    whole[is_misfit] = join(columns.planes(4, int(np.count_nonzero(is_misfit))))
    return whole


def _tops(logprobs: Words, below: NDArray[np.bool_]) -> Words:
    """The top logprob of each cell's position, for the cells from rank 1 on."""
    return _by_rank(np.broadcast_to(logprobs[:, :1], below.shape), below)


def _by_rank(cells: Words, is_listed: NDArray[np.bool_]) -> Words:
    """The listed cells in one row: rank 0 of all positions, then rank 1 ..."""
    return cells.T[is_listed.T]


def _width(*columns: Words) -> int:
    """How many bytes hold every id of the block: 1 to 4."""
    largest = max(int(column.max(initial=0)) for column in columns)
    return max(1, (largest.bit_length() + 7) // 8)


def _planes(values: Words, width: int) -> list[Plane]:
    """The lowest `width` bytes of each value as planes, the highest first."""
    cut = values.astype("<u4").view(np.uint8).reshape(-1, 4)
    return [cut[:, byte] for byte in reversed(range(width))]


def join(planes: list[Plane]) -> Words:
    """The values that byte planes, the highest first, are cut from."""
    whole = np.zeros((len(planes[0]), 4), np.uint8)
    for byte, plane in enumerate(reversed(planes)):
        whole[:, byte] = plane
    return whole.view("<u4").ravel().astype(np.uint32, copy=False)
