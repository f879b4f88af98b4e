"""Many traces end to end, as columns: what is asked of thousands of pairs is asked of one array."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evalboard.core.digest import short_digest
from evalboard.core.trace.trace import NO_TOKEN, TokenTrace

_SHAPE = struct.Struct("<II")


@dataclass(frozen=True, eq=False)
class TraceColumns:
    """The positions of m traces, one trace after the other.

    starts: int64[m + 1], trace i has the positions starts[i] to starts[i + 1]. widths: int64[m], its k, the
    alternatives of each of its positions.
    token_ids: int32[n]. logprobs: float32[n]. alternative_ids: int32[n, widest k], NO_TOKEN past a trace's own k as
    where the engine listed fewer. alternative_logprobs: float32[n, widest k], NaN there.
    Prompt ids are left out.
    """

    starts: NDArray[np.int64]
    widths: NDArray[np.int64]
    token_ids: NDArray[np.int32]
    logprobs: NDArray[np.float32]
    alternative_ids: NDArray[np.int32]
    alternative_logprobs: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.widths)

    def trace(self, index: int) -> TokenTrace:
        """Return one of the traces, without prompt ids; a view, not a copy."""
        start, end = self.starts[index : index + 2].tolist()
        k = int(self.widths[index])
        if start == end:  # its k may be larger than what any position of the others has
            ids, logprobs = np.zeros((0, k), np.int32), np.zeros((0, k), np.float32)
        else:
            ids, logprobs = self.alternative_ids[start:end, :k], self.alternative_logprobs[start:end, :k]
        return TokenTrace(self.token_ids[start:end], self.logprobs[start:end], ids, logprobs)

    def digests(self) -> list[bytes]:
        """Return the digest of each trace, as `TokenTrace.digest`."""
        columns = (self.token_ids, self.logprobs, self.alternative_ids, self.alternative_logprobs)
        widest, views = self.alternative_ids.shape[1], [_bytes(column) for column in columns]
        widths, starts = self.widths.tolist(), (4 * self.starts).tolist()
        digests = []
        for at, k in enumerate(widths):
            start, end = starts[at], starts[at + 1]
            if k != widest:
                digests.append(self.trace(at).digest)
                continue
            shape = _SHAPE.pack((end - start) // 4, k)
            own, listed = slice(start, end), slice(start * k, end * k)
            digests.append(
                short_digest(b"".join([shape, views[0][own], views[1][own], views[2][listed], views[3][listed]]))
            )
        return digests

    def cut(self, first: int, last: int) -> "TraceColumns":
        """Return the columns of the traces from `first` up to, not including, `last`; a view, not a copy."""
        rows = slice(int(self.starts[first]), int(self.starts[last]))
        return TraceColumns(
            self.starts[first : last + 1] - rows.start,
            self.widths[first:last],
            self.token_ids[rows],
            self.logprobs[rows],
            self.alternative_ids[rows],
            self.alternative_logprobs[rows],
        )

    def take(self, indexes: Sequence[int] | NDArray[np.int64]) -> "TraceColumns":
        """Return the columns of these traces in this order; one may come more than once."""
        chosen = np.asarray(indexes, np.int64)
        lengths = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], lengths)
        widest = _widest(lengths, self.widths[chosen])
        return TraceColumns(
            starts,
            self.widths[chosen],
            self.token_ids[rows],
            self.logprobs[rows],
            self.alternative_ids[rows, :widest],
            self.alternative_logprobs[rows, :widest],
        )


def join_traces(traces: Sequence[TokenTrace]) -> TraceColumns:
    """Return the columns of some traces, in their order."""
    lengths = np.array([len(trace) for trace in traces], np.int64)
    widths = np.array([trace.k for trace in traces], np.int64)
    return _join(lengths, widths, traces)


def join_columns(columns: Sequence[TraceColumns]) -> TraceColumns:
    """Return the traces of all these columns as one."""
    none = [np.zeros(0, np.int64)]
    lengths = np.concatenate(none + [np.diff(each.starts) for each in columns])
    widths = np.concatenate(none + [each.widths for each in columns])
    return _join(lengths, widths, columns)


def _join(
    lengths: NDArray[np.int64], widths: NDArray[np.int64], tables: Sequence[TokenTrace] | Sequence[TraceColumns]
) -> TraceColumns:
    shape = (int(lengths.sum()), _widest(lengths, widths))
    ids, logprobs = np.full(shape, NO_TOKEN, np.int32), np.full(shape, np.nan, np.float32)
    start = 0
    for table in tables:
        end = start + len(table.token_ids)
        if end > start:  # an empty trace has no cells, however large its k
            ids[start:end, : table.alternative_ids.shape[1]] = table.alternative_ids
            logprobs[start:end, : table.alternative_ids.shape[1]] = table.alternative_logprobs
        start = end
    return TraceColumns(
        np.concatenate([[0], np.cumsum(lengths)]),
        widths,
        np.concatenate([np.zeros(0, np.int32), *(table.token_ids for table in tables)]),
        np.concatenate([np.zeros(0, np.float32), *(table.logprobs for table in tables)]),
        ids,
        logprobs,
    )


def _bytes(column: NDArray[np.int32] | NDArray[np.float32]) -> memoryview:
    return np.ascontiguousarray(column, column.dtype.newbyteorder("<")).view(np.uint8).ravel().data


def _widest(lengths: NDArray[np.int64], widths: NDArray[np.int64]) -> int:
    """Return the most alternatives that any position has."""
    return int(widths[lengths > 0].max(initial=0))


def lowest_of_stretches(values: NDArray[np.floating], n_stretches: int) -> NDArray[np.intp]:
    """Return the place of the lowest value in each of so many stretches of equal length, ascending.

    values: float[n]; what is not finite is never the lowest, and a stretch of nothing else has none. Where there are
    no more values than stretches, each finite one stands for itself.
    """
    known = np.where(np.isfinite(values), values, np.inf)
    ends = np.linspace(0, len(known), min(n_stretches, len(known)) + 1).astype(np.intp).tolist()
    places = [first + int(known[first:end].argmin()) for first, end in pairwise(ends) if first < end]
    return np.array([place for place in places if known[place] < np.inf], dtype=np.intp)
