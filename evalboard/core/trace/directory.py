"""The directories of trace blocks: what their traces are and where the part of each one begins.

A directory has fixed-width rows and stands outside anything compressed, so that those of thousands of blocks are read
as one table, and of each block only the parts that are needed. It is refused before anything is unpacked.
"""

import itertools
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core import digest
from evalboard.core.errors import TraceDamaged
from evalboard.core.trace.cursor import AGAIN
from evalboard.core.trace.form import LOWERS, Form
from evalboard.core.trace.streams import Counts, Sizes

MAGIC = b"EvT"
VERSION = 2
MAX_K = 255  # a rank is one byte, and 255 marks a stray
MAX_CELLS = 1 << 25  # positions × widest k, and prompt tokens: 32 traces of 32,768 positions and 20 alternatives fit
CHECKSUM = struct.Struct("<I")

_HEAD = struct.Struct("<3sB2sB")  # magic, version, form, bytes of a count
_TOTALS = {2: struct.Struct("<HH"), 4: struct.Struct("<II")}  # traces, parts
_TRACE_ROWS = {
    size: np.dtype(
        [
            ("n", f"<u{size}"),
            ("k", "u1"),
            ("prompt", f"<u{size}"),  # 0 where no prompt ids are kept, else their number plus one
            ("n_strays", f"<u{size}"),
            ("n_misfits", f"<u{size}"),
            ("digest", f"V{digest.SHORT}"),
        ]
    )
    for size in _TOTALS
}
_PART_ROWS = {size: np.dtype([("n_traces", f"<u{size}"), ("size", "<u4")]) for size in _TOTALS}


_Table = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Directories:
    """The directories of b blocks as one table of m traces and one of p parts.

    forms: of each block. first_traces, first_parts: int64[b + 1], where each block's traces and parts begin. prompt:
    int64[m], as in the block. digests: 16 bytes for each trace. part_traces: int64[p + 1], where each part's traces
    begin. part_offsets, part_sizes: int64[p], in bytes of its block. ends: int64[b], the first byte of each block
    after its parts.
    """

    forms: list[Form]
    first_traces: Counts
    first_parts: Counts
    sizes: Sizes
    prompt: Counts
    digests: bytes
    part_traces: Counts
    part_offsets: Counts
    part_sizes: Counts
    ends: Counts

    def rows(self, blocks: NDArray[np.int64], slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the table rows of traces in these slots. Raises TraceDamaged if a slot does not exist."""
        sizes = self.first_traces[blocks + 1] - self.first_traces[blocks]
        is_none = (slots < 0) | (slots >= sizes)
        if is_none.any():
            first = int(is_none.argmax())
            raise TraceDamaged(f"The trace block holds {sizes[first]} traces and has no slot {slots[first]}. {AGAIN}")
        return self.first_traces[blocks] + slots

    @property
    def n_prompt(self) -> Counts:
        """Return the number of prompt ids stored for each trace."""
        return np.maximum(self.prompt - 1, 0)

    def parts_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the parts that contain some traces, each once, ascending."""
        return np.unique(np.searchsorted(self.part_traces, rows, "right") - 1)

    def blocks_of(self, parts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the block that contains each of some parts."""
        blocks: NDArray[np.int64] = np.searchsorted(self.first_parts, parts, "right") - 1
        return blocks

    def digest(self, row: int) -> bytes:
        return self.digests[row * digest.SHORT : (row + 1) * digest.SHORT]


def write_directory(
    form: Form,
    sizes: Sizes,
    prompt: Counts,
    digests: Sequence[bytes],
    part_ends: Sequence[int],
    part_sizes: Sequence[int],
) -> bytes:
    """Return a block's bytes up to its first part.

    prompt: 0 where no prompt ids are kept, else their number plus one. part_lengths: the traces of each part.
    part_sizes: bytes of each.
    """
    columns = {**sizes._asdict(), "prompt": prompt}
    largest = max(int(column.max(initial=0)) for column in columns.values())
    width = 2 if max(largest, len(digests)) < 1 << 16 else 4
    rows, parts = np.zeros(len(digests), _TRACE_ROWS[width]), np.zeros(len(part_sizes), _PART_ROWS[width])
    for name, column in columns.items():
        rows[name] = column
    rows["digest"] = np.frombuffer(b"".join(digests), f"V{digest.SHORT}")
    parts["n_traces"], parts["size"] = np.diff(part_ends, prepend=0), part_sizes
    body = b"".join(
        [
            _HEAD.pack(MAGIC, VERSION, form.pack(), width),
            _TOTALS[width].pack(len(rows), len(parts)),
            rows.tobytes(),
            parts.tobytes(),
        ]
    )
    return body + CHECKSUM.pack(zlib.crc32(body))


def check_version(start: bytes) -> None:
    """Raise TraceDamaged unless these bytes start a block of a known format and version."""
    if not start.startswith(MAGIC) or len(start) <= len(MAGIC):
        raise TraceDamaged(f"These bytes are not a trace block. {AGAIN}")
    version = start[len(MAGIC)]
    if version != VERSION:
        raise TraceDamaged(
            f"The trace block has format version {version}, and this program reads version {VERSION}: "
            "update Evalboard, or restore the database from a backup."
        )


def start_size(start: bytes) -> int:
    """Return how many bytes the directory takes that these bytes begin with.

    start: at least 16 bytes of a block. Raises TraceDamaged where they are not of a block that can be read.
    """
    check_version(start)
    if len(start) < _HEAD.size:
        raise TraceDamaged(f"The trace block ends too early. {AGAIN}")
    width = start[_HEAD.size - 1]
    if width not in _TOTALS:
        raise TraceDamaged(f"The trace block holds an impossible number. {AGAIN}")
    if len(start) < _HEAD.size + _TOTALS[width].size:
        raise TraceDamaged(f"The trace block ends too early. {AGAIN}")
    n_traces, n_parts = _read_totals(start, width)
    rows = n_traces * _TRACE_ROWS[width].itemsize + n_parts * _PART_ROWS[width].itemsize
    return _HEAD.size + _TOTALS[width].size + rows + CHECKSUM.size


def read_directories(starts: Sequence[bytes]) -> Directories:
    """Return the directories at the start of these bytes. Raises TraceDamaged if one is damaged."""
    forms, widths, traces, parts, sizes, first_traces, first_parts = [], [], [], [], [], [0], [0]
    for start in starts:
        size = start_size(start)
        if size > len(start):
            raise TraceDamaged(f"The trace block ends too early. {AGAIN}")
        body_size = size - CHECKSUM.size
        if zlib.crc32(start[:body_size]) != CHECKSUM.unpack_from(start, body_size)[0]:
            raise TraceDamaged(f"The trace block is damaged: its checksum does not match. {AGAIN}")
        *_, packed_form, width = _HEAD.unpack_from(start)
        n_traces, n_parts = _read_totals(start, width)
        parts_at = body_size - n_parts * _PART_ROWS[width].itemsize
        forms.append(Form.unpack(*packed_form))
        widths.append(width)
        traces.append(start[_HEAD.size + _TOTALS[width].size : parts_at])
        parts.append(start[parts_at:body_size])
        sizes.append(size)
        first_traces.append(first_traces[-1] + n_traces)
        first_parts.append(first_parts[-1] + n_parts)
    table, part_table = _table(_TRACE_ROWS, widths, traces), _table(_PART_ROWS, widths, parts)
    directories = _join(forms, table, part_table, np.array(first_traces), np.array(first_parts), np.array(sizes))
    _check(directories)
    return directories


def _read_totals(start: bytes, width: int) -> tuple[int, int]:
    n_traces, n_parts = _TOTALS[width].unpack_from(start, _HEAD.size)
    return n_traces, n_parts


def refusal(n: Counts, k: Counts, n_prompt: Counts, first_traces: Counts) -> str | None:
    """Return why such traces do not fit into a block, or None. first_traces: int64[b + 1], per block."""
    if (k > MAX_K).any():
        return f"more than {MAX_K} alternatives at a position"
    starts = first_traces[:-1][np.diff(first_traces) > 0]
    if not len(starts):
        return None
    n, n_prompt = (np.minimum(each, MAX_CELLS + 1) for each in (n, n_prompt))  # so that no sum overflows
    positions, widest = np.add.reduceat(n, starts), np.maximum.reduceat(np.where(n > 0, k, 0), starts)
    if (positions * np.maximum(widest, 1) > MAX_CELLS).any():
        return f"more than {MAX_CELLS} positions times alternatives"
    if (np.add.reduceat(n_prompt, starts) > MAX_CELLS).any():
        return f"more than {MAX_CELLS} prompt tokens"
    return None


def _table(rows: dict[int, np.dtype[np.void]], widths: Sequence[int], tables: Sequence[bytes]) -> _Table:
    """Return the columns of all tables, end to end, parsing neighbours of equal width in one call."""
    runs = [
        np.frombuffer(b"".join(tables[at] for at in run), rows[width])
        for width, run in itertools.groupby(range(len(tables)), key=widths.__getitem__)
    ] or [np.zeros(0, rows[2])]
    table = runs[0] if len(runs) == 1 else np.concatenate([run.astype(rows[4]) for run in runs])
    names = table.dtype.names or ()
    return {name: table[name] if name == "digest" else table[name].astype(np.int64) for name in names}


def _join(
    forms: list[Form],
    table: _Table,
    parts: _Table,
    first_traces: Counts,
    first_parts: Counts,
    sizes: Counts,
) -> Directories:
    part_ends = np.cumsum(parts["size"])
    before = np.concatenate([[0], part_ends])[first_parts]  # bytes of parts before each block's
    block_of = np.repeat(np.arange(len(forms)), np.diff(first_parts))
    return Directories(
        forms=forms,
        first_traces=first_traces,
        first_parts=first_parts,
        sizes=Sizes(*(table[name] for name in Sizes._fields)),
        prompt=table["prompt"],
        digests=table["digest"].tobytes(),
        part_traces=np.concatenate([[0], np.cumsum(parts["n_traces"])]),
        part_offsets=part_ends - parts["size"] + (sizes - before[:-1])[block_of],
        part_sizes=parts["size"],
        ends=sizes + np.diff(before),
    )


def _check(table: Directories) -> None:
    reason = refusal(table.sizes.n, table.sizes.k, table.n_prompt, table.first_traces)
    if reason:
        raise TraceDamaged(f"The trace block's directory is impossible: {reason}. {AGAIN}")
    if not np.array_equal(table.part_traces[table.first_parts], table.first_traces):
        raise TraceDamaged(f"The trace block's directory is impossible: its parts hold other traces. {AGAIN}")
    sizes = table.sizes
    if ((sizes.k == 0) & (sizes.n_strays < sizes.n)).any():
        raise TraceDamaged(f"The trace block's directory names alternatives that it does not hold. {AGAIN}")
    if (sizes.n_strays > sizes.n).any() or (sizes.n_misfits > sizes.lengths()[LOWERS]).any():
        raise TraceDamaged(f"The trace block's directory is impossible: more exceptions than positions. {AGAIN}")
