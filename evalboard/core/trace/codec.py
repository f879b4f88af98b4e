"""Traces as bytes and back, exact to the bit; docs/formats.md says every byte and why.

A block holds a few dozen traces: a directory (sizes and digests), parts of a few traces each, and the prompt ids.
Whoever wants few of its traces reads the directory and the parts that they stand in. What is damaged, unknown or
impossible is refused with TraceDamaged before it can cost memory.
"""

import itertools
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalboard.core.errors import TraceDamaged
from evalboard.core.trace import directory, packing, parts, streams
from evalboard.core.trace.cursor import AGAIN, Cursor
from evalboard.core.trace.directory import CHECKSUM, Directories
from evalboard.core.trace.form import IDS, RANKS, Form, Words, cut, put
from evalboard.core.trace.streams import Counts, Sizes, Streams
from evalboard.core.trace.trace import TokenTrace
from evalboard.core.trace.trace_columns import TraceColumns, join_traces

BLOCK_VERSION = directory.VERSION
PART_CELLS = 2048  # positions × alternatives, with which a part is full: its entropy tables take more of smaller ones
WORTH_PACKING = 0.98


def encode_block(traces: Sequence[TokenTrace]) -> bytes:
    """Pack traces into one block, slot by slot. Raises ValueError if they exceed a block's limits."""
    prompts = [trace.prompt_token_ids for trace in traces]
    n, k = (np.array(each, np.int64) for each in ([len(trace) for trace in traces], [trace.k for trace in traces]))
    prompt = np.array([0 if ids is None else len(ids) + 1 for ids in prompts], np.int64)
    reason = directory.refusal(n, k, np.maximum(prompt - 1, 0), np.array([0, len(traces)]))
    if reason:
        raise ValueError(f"{reason}; put fewer traces in a block")
    grid, sizes, numbers = streams.write_streams(join_traces(traces))
    prompt_ids = streams.ids_up(np.concatenate([np.zeros(0, np.int32), *(ids for ids in prompts if ids is not None)]))
    part_ends = _part_ends(np.maximum(sizes.n * sizes.k, sizes.n))
    form = _form(grid, numbers, prompt_ids, len(part_ends))
    bodies = [parts.write_part(each, form) for each in _split(numbers, sizes, part_ends)]
    digests = [trace.digest for trace in traces]
    head = directory.write_directory(form, sizes, prompt, digests, part_ends, [len(body) for body in bodies])
    return b"".join([head, *bodies, _write_prompts(form, prompt_ids)])


def read_block(data: bytes) -> list[TokenTrace]:
    """Return all traces of a block in slot order. Raises TraceDamaged if any differs from what was stored."""
    data = bytes(data)
    table = directory.read_directories([data])
    return _read_slots(data, table, range(len(table.prompt)))


def read_trace(data: bytes, slot: int) -> TokenTrace:
    """Return the trace in one slot of a block. Raises TraceDamaged if it differs from what was stored."""
    return read_traces(data, [slot])[0]


def read_traces(data: bytes, slots: Sequence[int]) -> list[TokenTrace]:
    """Return the traces in some slots of a block, in the given order; other parts are not unpacked.

    Raises TraceDamaged if any differs from what was stored.
    """
    data = bytes(data)
    return _read_slots(data, directory.read_directories([data]), slots)


def _form(grid: int, numbers: Streams, prompt_ids: Words, n_parts: int) -> Form:
    largest = max(int(ids.max(initial=0)) for ids in (numbers[IDS], prompt_ids))
    form = Form(grid, max(1, (largest.bit_length() + 7) // 8), has_ranks=bool(numbers[RANKS].any()))
    planes = [(bit, cut(numbers[plane.stream], plane)) for bit, plane in form.number_planes()]
    return replace(form, plain=sum(1 << bit for bit, plane in planes if _is_random(plane, n_parts)))


def _is_random(plane: bytes, n_parts: int) -> bool:
    """Tell whether compressing a plane is not worth it, by its entropy plus the size of its tables."""
    counts = np.bincount(np.frombuffer(plane, np.uint8))
    counts = counts[counts > 0]
    n_packed = -(counts * np.log2(counts / max(len(plane), 1))).sum() / 8 + n_parts * len(counts) / 2
    return bool(n_packed > len(plane) * WORTH_PACKING)


def _part_ends(cells: Counts) -> list[int]:
    """Return where each part ends: as soon as it has PART_CELLS."""
    ends, n = [], 0
    for at, each in enumerate(cells.tolist(), 1):
        n += each
        if n >= PART_CELLS or at == len(cells):
            ends.append(at)
            n = 0
    return ends


def _split(numbers: Streams, sizes: Sizes, ends: Sequence[int]) -> Iterator[Streams]:
    """Yield the streams of the traces of each part."""
    starts = streams.run_starts(sizes.lengths())[:, [0, *ends]].T.tolist()
    for first, last in itertools.pairwise(starts):
        yield [each[start:end] for each, start, end in zip(numbers, first, last, strict=True)]


def _write_prompts(form: Form, prompt_ids: Words) -> bytes:
    if not len(prompt_ids):
        return b""
    frame = packing.pack([cut(prompt_ids, plane) for plane in form.id_planes()])
    return frame + CHECKSUM.pack(zlib.crc32(frame))


def _read_prompts(rest: bytes, form: Form, n: int) -> NDArray[np.int32]:
    """Return all prompt ids of a block, from the bytes after its parts."""
    prompt_ids = np.zeros(n, "<u4")
    if n:
        frame = rest[: -CHECKSUM.size]
        if len(rest) < CHECKSUM.size or zlib.crc32(frame) != CHECKSUM.unpack(rest[-CHECKSUM.size :])[0]:
            raise TraceDamaged(f"The trace block is damaged: its checksum does not match. {AGAIN}")
        content = Cursor(packing.Unpacker()(frame, n * form.id_bytes))
        for plane in form.id_planes():
            put(prompt_ids, plane, content.take(n * plane.width))
    elif rest:
        raise TraceDamaged(f"The trace block holds more than its directory says. {AGAIN}")
    return streams.ids_down(prompt_ids.astype(np.uint32, copy=False))


def _read_slots(data: bytes, table: Directories, slots: Sequence[int]) -> list[TokenTrace]:
    rows = table.rows(np.zeros(len(slots), np.int64), np.array(slots, np.int64))
    prompt_ids = _read_prompts(data[int(table.ends[0]) :], table.forms[0], int(table.n_prompt.sum()))
    needed = table.parts_of(rows)
    begins = table.part_offsets[needed]
    pieces = [data[begin:end] for begin, end in zip(begins, begins + table.part_sizes[needed], strict=True)]
    columns = parts.read_parts(table, rows, needed, pieces)
    ends = np.cumsum(table.n_prompt)[rows]
    begins = ends - table.n_prompt[rows]
    has_prompt = table.prompt[rows] > 0
    return [
        replace(columns.trace(at), prompt_token_ids=prompt_ids[begin:end] if is_kept else None)
        for at, (begin, end, is_kept) in enumerate(zip(begins, ends, has_prompt, strict=True))
    ]


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
