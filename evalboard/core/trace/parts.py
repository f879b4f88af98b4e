"""Unpack the parts of a trace block that contain the wanted traces, and no others.

All wanted traces of all blocks are read at once: their runs of every plane are joined, so that the arithmetic is
vectorised.
"""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evalboard.core.errors import TraceDamaged
from evalboard.core.trace import packing
from evalboard.core.trace.cursor import AGAIN
from evalboard.core.trace.directory import CHECKSUM, Directories
from evalboard.core.trace.form import Form, cut, put
from evalboard.core.trace.streams import Counts, Sizes, Streams, read_streams, run_starts
from evalboard.core.trace.trace_columns import TraceColumns, join_columns


def write_part(streams: Streams, form: Form) -> bytes:
    """Return the part that has these streams."""
    packed = [cut(streams[plane.stream], plane) for plane in form.packed_planes()]
    plain = [cut(streams[plane.stream], plane) for plane in form.plain_planes()]
    body = b"".join([packing.pack(packed), *plain])
    return body + CHECKSUM.pack(zlib.crc32(body))


def read_parts(
    table: Directories, rows: NDArray[np.int64], parts: NDArray[np.int64], pieces: Sequence[bytes]
) -> TraceColumns:
    """Return the traces of some rows of the table, in that order.

    parts: in which they stand, ascending; pieces: the bytes of each. Raises TraceDamaged unless every trace is what was
    stored.
    """
    if [len(piece) for piece in pieces] != table.part_sizes[parts].tolist():
        raise TraceDamaged(f"The trace block ends too early. {AGAIN}")
    runs = _StreamRuns(table.sizes)
    forms = [table.forms[block] for block in table.blocks_of(parts).tolist()]
    part_of = np.searchsorted(parts, np.searchsorted(table.part_traces, rows, "right") - 1)
    read, order = [], []
    for form in dict.fromkeys(forms):  # nearly always one
        alike = np.array([at for at, each in enumerate(forms) if each == form])
        chosen = np.flatnonzero(np.isin(part_of, alike))
        first, last = table.part_traces[parts[alike]], table.part_traces[parts[alike] + 1]
        unpacked = _UnpackedParts(form, runs, first, last, [pieces[at] for at in alike.tolist()])
        streams = unpacked.streams(rows[chosen], np.searchsorted(alike, part_of[chosen]))
        read.append(read_streams(form.grid, table.sizes.of(rows[chosen]), streams))
        order.append(chosen)
    columns = read[0] if len(read) == 1 else join_columns(read).take(np.argsort(np.concatenate([[], *order])))
    _check_digests(columns, table, rows)
    return columns


class _StreamRuns:
    """Where each trace's runs are in each stream: lengths int64[5, m], starts int64[5, m + 1]."""

    def __init__(self, sizes: Sizes) -> None:
        self.lengths = sizes.lengths()
        self.starts = run_starts(self.lengths)


class _UnpackedParts:
    """Unpacked parts of one form: each the content of its frame, then the unpacked planes next to it."""

    def __init__(self, form: Form, runs: _StreamRuns, first: Counts, last: Counts, pieces: Sequence[bytes]) -> None:
        """Take parts of the traces from `first` to `last`, int64[p] each, and their bytes."""
        self._runs, self._first = runs, first
        packed, plain = form.packed_planes(), form.plain_planes()
        self._planes = [*packed, *plain]
        self._stream = np.array([plane.stream for plane in self._planes])
        self._width = np.array([[plane.width] for plane in self._planes])
        lengths = (runs.starts[:, last] - runs.starts[:, first])[self._stream] * self._width
        ends = np.cumsum(lengths, axis=0)
        self._starts = ends - lengths  # int64[planes, p]
        n_packed, n_bytes = ends[len(packed) - 1].tolist(), ends[-1].tolist()
        unpack = packing.Unpacker()
        self._contents = [
            _unpack(piece, unpack, size, whole - size)
            for piece, size, whole in zip(pieces, n_packed, n_bytes, strict=True)
        ]

    def streams(self, rows: Counts, part_of: Counts) -> Streams:
        """Return the runs of some traces, end to end. part_of: the part that each of them is in."""
        lengths = self._runs.lengths[:, rows]
        within = self._runs.starts[:, rows] - self._runs.starts[:, self._first[part_of]]
        begins = self._starts[:, part_of] + self._width * within[self._stream]
        ends = begins + self._width * lengths[self._stream]
        words = [np.zeros(size, "<u4") for size in lengths.sum(axis=1).tolist()]
        contents = [self._contents[part] for part in part_of.tolist()]
        for plane, first, last in zip(self._planes, begins.tolist(), ends.tolist(), strict=True):
            taken = [content[start:end] for content, start, end in zip(contents, first, last, strict=True)]
            put(words[plane.stream], plane, b"".join(taken))
        return [each.astype(np.uint32, copy=False) for each in words]


def _unpack(piece: bytes, unpack: packing.Unpacker, n_packed: int, n_plain: int) -> bytes:
    body, plain_at = piece[: -CHECKSUM.size], len(piece) - CHECKSUM.size - n_plain
    if plain_at <= 0:
        raise TraceDamaged(f"The trace block ends too early. {AGAIN}")
    if zlib.crc32(body) != CHECKSUM.unpack(piece[-CHECKSUM.size :])[0]:
        raise TraceDamaged(f"The trace block is damaged: its checksum does not match. {AGAIN}")
    return unpack(body[:plain_at], n_packed) + body[plain_at:]


def _check_digests(columns: TraceColumns, table: Directories, rows: Counts) -> None:
    for row, digest in zip(rows.tolist(), columns.digests(), strict=True):
        if digest != table.digest(row):
            slot = row - int(table.first_traces[np.searchsorted(table.first_traces, row, "right") - 1])
            raise TraceDamaged(f"The stored trace in slot {slot} does not match its digest. {AGAIN}")
