"""Single traces out of a block's columns, without building those of their neighbours.

The planes are cut where the directory says that a trace's positions lie; docs/trace-format.md gives their order. Only
what stands in the block's order of exceptions (strays, misfits) is counted over the whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core import gaps
from evalboard.core.cursor import Cursor
from evalboard.core.trace_columns import HAS_RANKS, PLAIN, STRAY, Plane, Table, Words, chosen, form, join

Counts = NDArray[np.int64]


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
) -> list[Table]:
    """One table for each of the slots; n, k and n_prompt are those of every trace of the block.

    Raises TraceDamaged for columns that no table gives, as far as the slots show it.
    """
    lengths, widths = np.array(n, np.int64), np.array(k, np.int64)
    ranks = np.arange(int(widths[lengths > 0].max(initial=0)))
    listed = lengths[:, None] * (widths[:, None] > ranks)  # [traces, widest k]: cells of each trace at each rank
    found = _read(columns, flags, int(lengths.sum()), listed.sum(axis=0), sum(n_prompt))
    starts = np.cumsum(listed, axis=0) - listed + np.cumsum(listed.sum(axis=0)) - listed.sum(axis=0)
    positions, prompts = np.cumsum(lengths) - lengths, np.cumsum(n_prompt) - np.array(n_prompt, np.int64)
    return [
        _table(
            found, int(positions[slot]), n[slot], starts[slot, : k[slot]].tolist(), int(prompts[slot]), n_prompt[slot]
        )
        for slot in slots
    ]


def _read(columns: Cursor, flags: int, n: int, listed: Counts, n_prompt: int) -> _Columns:
    grid, width = form(flags)
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


def _table(found: _Columns, start: int, n: int, cells: Sequence[int], prompt_start: int, n_prompt: int) -> Table:
    """The table of n positions from `start` on; `cells` says where their cells of each rank begin."""
    n_top = len(found.top[0])
    ids, logprobs = np.zeros((n, len(cells)), np.uint32), np.zeros((n, len(cells)), np.uint32)
    for rank, at in enumerate(cells):
        ids[:, rank] = _joined(found.ids, at, n)
        if rank == 0:
            logprobs[:, 0] = _joined(found.top, at, n)
        else:
            logprobs[:, rank] = _below(found, logprobs[:, 0].copy(), at - n_top)
    is_listed = np.ones(ids.shape, np.bool_)
    ranks = found.ranks[start : start + n]
    if cells and not ranks.any():  # nearly always
        token_ids, own_logprobs = ids[:, 0], logprobs[:, 0]
    else:
        first, last = np.searchsorted(found.stray_places, (start, start + n))
        token_ids = chosen(ranks, ids, found.stray_ids[first:last], is_listed)
        own_logprobs = chosen(ranks, logprobs, found.stray_logprobs[first:last], is_listed)
    return Table(
        token_ids=token_ids,
        logprobs=own_logprobs,
        alternative_ids=ids,
        alternative_logprobs=logprobs,
        is_listed=is_listed,
        prompt_token_ids=_joined(found.prompt, prompt_start, n_prompt),
    )


def _below(found: _Columns, tops: Words, at: int) -> Words:
    """The logprobs of one rank from 1 on, whose lower cells begin at `at`."""
    lower = _joined(found.lower, at, len(tops))
    if found.grid == PLAIN:
        return lower
    whole = gaps.take_steps(tops, lower, found.grid)
    if len(found.misfit_places):
        first, last = np.searchsorted(found.misfit_places, (at, at + len(tops)))
        whole[found.misfit_places[first:last] - at] = found.misfits[first:last]
    return whole


def _joined(planes: Sequence[Plane], start: int, n: int) -> Words:
    return join([plane[start : start + n] for plane in planes])
