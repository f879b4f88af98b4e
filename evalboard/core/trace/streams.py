"""Traces as streams of numbers, and back: what a part is made of, before it is cut into bytes.

There are five, and each has one **run** for every trace, in the order of the traces: ranks, of the chosen tokens; tops,
the rank 0 logprobs, then the strays' logprobs; lowers, the logprobs from rank 1 on, rank by rank, as steps below the
top or as they are; ids, of all alternatives, rank by rank, then the strays'; misfits. Ids are raised by one, so that
"no token" is 0. Logprobs are handled as bits, never as values.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalboard.core.errors import TraceDamaged
from evalboard.core.trace import gaps
from evalboard.core.trace.cursor import AGAIN
from evalboard.core.trace.form import IDS, LOWERS, MISFITS, RANKS, TOPS, WHOLE, Words
from evalboard.core.trace.trace_columns import TraceColumns

Counts = NDArray[np.int64]
Places = NDArray[np.intp]
Streams = list[Words]  # by the numbers of form.py

STRAY = 255  # the rank of a chosen token that no alternative repeats bit for bit
_NAN = np.float32(np.nan).view(np.uint32)


class Sizes(NamedTuple):
    """The numbers that determine the length of each trace's runs, int64[m] each.

    n: positions. k: alternatives of each. n_strays: chosen tokens that are no alternative. n_misfits: logprobs off the
    grid.
    """

    n: Counts
    k: Counts
    n_strays: Counts
    n_misfits: Counts

    def of(self, traces: Counts) -> "Sizes":
        """Return the sizes of some traces, in this order."""
        return Sizes(*(each[traces] for each in self))

    def lengths(self) -> Counts:
        """Return int64[5, m]: the length of each trace's run in each stream."""
        n_tops = np.where(self.k > 0, self.n, 0)
        n_cells = self.n * self.k
        return np.array(
            [self.n, n_tops + self.n_strays, n_cells - n_tops, n_cells + self.n_strays, self.n_misfits], np.int64
        )


def run_starts(lengths: Counts) -> Counts:
    """Return int64[5, m + 1]: where each trace's run begins in each stream, and the last one ends."""
    starts = np.zeros((len(lengths), lengths.shape[1] + 1), np.int64)
    np.cumsum(lengths, axis=1, out=starts[:, 1:])
    return starts


def write_streams(columns: TraceColumns) -> tuple[int, Sizes, Streams]:
    """Return the grid of the lowers, the sizes and the streams of some traces."""
    n, k = np.diff(columns.starts), columns.widths
    ids, logprobs = ids_up(columns.alternative_ids), _bits(columns.alternative_logprobs)
    token_ids, own_logprobs = ids_up(columns.token_ids), _bits(columns.logprobs)
    layout = _Layout(Sizes(n, k, np.zeros_like(n), np.zeros_like(n)))
    ranks = _ranks(token_ids, own_logprobs, ids, logprobs, layout.is_listed)
    is_stray = ranks == STRAY
    n_strays = np.bincount(layout.trace_of[is_stray], minlength=len(n))
    layout = _Layout(Sizes(n, k, n_strays, np.zeros_like(n)))
    streams = [np.zeros(size, np.uint32) for size in layout.lengths.sum(axis=1).tolist()]
    streams[RANKS] = ranks
    layout.put(streams[IDS], IDS, ids, 0)
    layout.put(streams[TOPS], TOPS, logprobs[:, :1], 0)
    layout.put(streams[LOWERS], LOWERS, logprobs[:, 1:], 1)
    streams[IDS][layout.strays(IDS)] = token_ids[is_stray]
    streams[TOPS][layout.strays(TOPS)] = own_logprobs[is_stray]
    tops = np.zeros_like(streams[LOWERS])
    layout.put(tops, LOWERS, np.broadcast_to(logprobs[:, :1], logprobs[:, 1:].shape), 1)
    lowered = gaps.find_steps(tops, streams[LOWERS])
    if lowered is None:
        return WHOLE, layout.sizes, streams
    misfits = np.flatnonzero(lowered.steps == gaps.MISFIT)
    streams[MISFITS], streams[LOWERS] = streams[LOWERS][misfits], lowered.steps
    return lowered.grid, layout.sizes._replace(n_misfits=layout.count(LOWERS, misfits)), streams


def read_streams(grid: int, sizes: Sizes, streams: Streams) -> TraceColumns:
    """Return the traces that have these streams. Raises TraceDamaged for streams that no traces have."""
    layout = _Layout(sizes)
    is_listed = layout.is_listed
    ids = layout.take(streams, IDS, 0)
    tops = layout.take(streams, TOPS, 0, 1)
    lowers = layout.take(streams, LOWERS, 1)
    if grid != WHOLE:
        misfits = np.flatnonzero(streams[LOWERS] == gaps.MISFIT)
        _check_counts(layout.count(LOWERS, misfits), sizes.n_misfits)
        is_misfit = (lowers == gaps.MISFIT) & is_listed[:, 1:]
        lowers = gaps.take_steps(tops, lowers, grid)
        lowers[is_misfit] = streams[MISFITS][np.searchsorted(misfits, layout.cells(LOWERS, 1)[is_misfit])]
    logprobs = np.concatenate([tops, lowers], axis=1)
    if not layout.is_full:
        logprobs[~is_listed] = _NAN
    token_ids, own_logprobs = _chosen(layout, streams, ids, logprobs)
    return TraceColumns(
        starts=layout.starts,
        widths=sizes.k,
        token_ids=ids_down(token_ids),
        logprobs=own_logprobs.view(np.float32),
        alternative_ids=ids_down(ids),
        alternative_logprobs=logprobs.view(np.float32),
    )


class _Layout:
    """The places of some traces' numbers in their streams.

    starts: int64[m + 1], where each trace's positions begin among all n. trace_of: int64[n], the trace of each
    position. is_listed: bool[n, widest k], which alternatives its trace has; is_full: all of them.
    """

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.lengths = sizes.lengths()
        self._ends = np.cumsum(self.lengths, axis=1)
        self.starts = np.concatenate([[0], np.cumsum(sizes.n)])
        self.trace_of = np.repeat(np.arange(len(sizes.n)), sizes.n)
        widths = sizes.k[self.trace_of][:, None]
        self._ranks = np.arange(int(widths.max(initial=0)))
        self.is_listed: NDArray[np.bool_] = self._ranks < widths
        self.is_full = bool(self.is_listed.all())
        self._positions = np.arange(self.starts[-1]) - self.starts[self.trace_of]

    def cells(self, stream: int, first: int, end: int | None = None) -> Counts:
        """Return int64[n, r]: where in a stream the alternatives of rank `first` to `end` are, by position."""
        begins = self._ends[stream] - self.lengths[stream]
        at: Counts = (begins[self.trace_of] + self._positions)[:, None]
        return at + self.sizes.n[self.trace_of][:, None] * (self._ranks[first:end] - first)

    def put(self, words: Words, stream: int, cells: Words, first: int) -> None:
        """Set the numbers of a stream to those of uint32[n, r], the alternatives from rank `first` on."""
        end = first + cells.shape[1]
        listed = self.is_listed[:, first:end]
        words[self.cells(stream, first, end)[listed]] = cells[listed]

    def take(self, streams: Streams, stream: int, first: int, end: int | None = None) -> Words:
        """Return what `put` was given, 0 where nothing is listed."""
        places = self.cells(stream, first, end)
        if self.is_full:
            return streams[stream][places]
        is_listed, cells = self.is_listed[:, first:end], np.zeros(places.shape, np.uint32)
        cells[is_listed] = streams[stream][places[is_listed]]
        return cells

    def strays(self, stream: int) -> Counts:
        """Return the places of chosen tokens that are no alternative: the end of each trace's run."""
        n_strays = self.sizes.n_strays
        places: Counts = np.repeat(self._ends[stream] - np.cumsum(n_strays), n_strays) + np.arange(n_strays.sum())
        return places

    def count(self, stream: int, places: Places) -> Counts:
        """Return how many of some places in a stream, which ascend, lie in each trace's run."""
        counts: Counts = np.searchsorted(places, self._ends[stream])
        counts[1:] -= counts[:-1].copy()
        return counts


def _ranks(token_ids: Words, own_logprobs: Words, ids: Words, logprobs: Words, is_listed: NDArray[np.bool_]) -> Words:
    """Return uint32[n]: the first alternative equal to the chosen token to the bit, or the no-match code."""
    ranks = np.full(len(token_ids), STRAY, np.uint32)
    for rank in reversed(range(is_listed.shape[1])):
        is_same = (ids[:, rank] == token_ids) & (logprobs[:, rank] == own_logprobs) & is_listed[:, rank]
        ranks[is_same] = rank
    return ranks


def _chosen(layout: _Layout, streams: Streams, ids: Words, logprobs: Words) -> tuple[Words, Words]:
    """Return ids and logprobs of the chosen tokens, uint32[n]: an alternative, or stored separately."""
    ranks, sizes = streams[RANKS].astype(np.intp), layout.sizes
    is_stray = ranks == STRAY
    if (~is_stray & (ranks >= sizes.k[layout.trace_of])).any():
        raise TraceDamaged(f"The trace block names an alternative that it does not hold. {AGAIN}")
    if not sizes.n_strays.any() and not ranks.any() and ids.shape[1]:  # nearly always
        return ids[:, 0].copy(), logprobs[:, 0].copy()
    _check_counts(layout.count(RANKS, np.flatnonzero(is_stray)), sizes.n_strays)
    listed = np.flatnonzero(~is_stray)
    token_ids, own_logprobs = np.zeros(len(ranks), np.uint32), np.zeros(len(ranks), np.uint32)
    token_ids[is_stray] = streams[IDS][layout.strays(IDS)]
    own_logprobs[is_stray] = streams[TOPS][layout.strays(TOPS)]
    token_ids[listed], own_logprobs[listed] = ids[listed, ranks[listed]], logprobs[listed, ranks[listed]]
    return token_ids, own_logprobs


def _check_counts(counts: Counts, stated: Counts) -> None:
    if not np.array_equal(counts, stated):
        raise TraceDamaged(f"The trace block has other exceptions than its directory says. {AGAIN}")


def ids_up(ids: NDArray[np.int32]) -> Words:
    return np.ascontiguousarray(ids, dtype=np.int32).view(np.uint32) + np.uint32(1)


def ids_down(ids: Words) -> NDArray[np.int32]:
    return np.ascontiguousarray(ids - np.uint32(1)).view(np.int32)


def _bits(logprobs: NDArray[np.float32]) -> Words:
    return np.ascontiguousarray(logprobs, dtype=np.float32).view(np.uint32)
