"""Traces as bytes and back, exact to the bit; docs/trace-format.md says every byte and why.

A block holds a few dozen traces: a header, a directory (sizes and digests), one zstd frame of columns, a
checksum. What is damaged, unknown or impossible is refused with TraceDamaged before it can cost memory.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from evalboard.core import digest, trace_columns, trace_spans
from evalboard.core.cursor import AGAIN, Cursor, varint
from evalboard.core.errors import TraceDamaged
from evalboard.core.trace import Trace
from evalboard.core.trace_columns import Table, Words

MAGIC = b"EvT"
VERSION = 1
MAX_K = 255  # a rank is one byte, and 255 marks a stray
MAX_CELLS = 1 << 25  # positions × widest k, and prompt tokens: 32 traces of 32,768 positions and 20 alternatives fit
MAX_WINDOW = 1 << 27
LEVEL = 19

_CHECKSUM = struct.Struct("<I")
_HEAD = len(MAGIC) + 1


class _Entry(NamedTuple):  # made for every trace of a block, whichever is read: a dataclass takes twice as long
    """What the directory says of one trace; n_prompt is None where no prompt ids are kept."""

    n: int
    k: int
    n_prompt: int | None
    digest: bytes


def encode_block(traces: Sequence[Trace]) -> bytes:
    """Pack traces into one block, slot by slot. Raises ValueError where they exceed what a block may hold."""
    entries = [_entry(trace) for trace in traces]
    reason = _refusal(entries)
    if reason:
        raise ValueError(f"{reason}; put fewer traces in a block")
    flags, groups = trace_columns.write(_gather(traces, entries))
    size = sum(len(group) for group in groups)
    body = b"".join(
        [MAGIC, bytes([VERSION]), _directory(entries), bytes([flags]), varint(size), _compress(groups, size)]
    )
    return body + _CHECKSUM.pack(zlib.crc32(body))


def read_block(data: bytes) -> list[Trace]:
    """All traces of a block in slot order. Raises TraceDamaged unless every one is what was stored."""
    entries, table = _decode(bytes(data))
    return [_trace(entries, table, slot) for slot in range(len(entries))]


def read_trace(data: bytes, slot: int) -> Trace:
    """The trace in one slot of a block. Raises TraceDamaged unless it is what was stored."""
    return read_traces(data, [slot])[0]


def read_traces(data: bytes, slots: Sequence[int]) -> list[Trace]:
    """The traces in some slots of a block, in the order asked for; the others are not decoded.

    Raises TraceDamaged unless each is what was stored.
    """
    entries, flags, columns = _unpack(bytes(data))
    for slot in slots:
        if not 0 <= slot < len(entries):
            raise TraceDamaged(f"The trace block holds {len(entries)} traces and has no slot {slot}. {AGAIN}")
    n, k, n_prompt = [entry.n for entry in entries], [entry.k for entry in entries], _prompts(entries)
    tables = trace_spans.read_spans(columns, flags, n, k, n_prompt, slots)
    columns.end()
    return [_trace([entries[slot]], table, 0) for slot, table in zip(slots, tables, strict=True)]


def _decode(data: bytes) -> tuple[list[_Entry], Table]:
    entries, flags, columns = _unpack(data)
    table = trace_columns.read(columns, flags, _listed(entries), sum(entry.n_prompt or 0 for entry in entries))
    columns.end()
    return entries, table


def _unpack(data: bytes) -> tuple[list[_Entry], int, Cursor]:
    """Directory, flags and columns."""
    cursor = _open(data)
    entries = _read_directory(cursor)
    reason = _refusal(entries)
    if reason:
        raise TraceDamaged(f"The trace block's directory is impossible: {reason}. {AGAIN}")
    flags = cursor.take(1)[0]
    return entries, flags, Cursor(_decompress(cursor, _most_bytes(entries)))


def _open(data: bytes) -> Cursor:
    """Check magic, version and checksum; what is left is the directory and the frame."""
    if not data.startswith(MAGIC) or len(data) < _HEAD + _CHECKSUM.size:
        raise TraceDamaged(f"These bytes are not a trace block. {AGAIN}")
    version = data[len(MAGIC)]
    if version != VERSION:
        raise TraceDamaged(
            f"The trace block has format version {version}, and this program reads version {VERSION}: "
            "update Evalboard, or restore the database from a backup."
        )
    body, (checksum,) = data[: -_CHECKSUM.size], _CHECKSUM.unpack(data[-_CHECKSUM.size :])
    if zlib.crc32(body) != checksum:
        raise TraceDamaged(f"The trace block is damaged: its checksum does not match. {AGAIN}")
    return Cursor(body[_HEAD:])


def _entry(trace: Trace) -> _Entry:
    prompt = trace.prompt_token_ids
    return _Entry(len(trace), trace.k, None if prompt is None else len(prompt), trace.digest)


def _refusal(entries: Sequence[_Entry]) -> str | None:
    """Why no block may have this directory, or None."""
    if any(entry.k > MAX_K for entry in entries):
        return f"more than {MAX_K} alternatives at a position"
    widest = max((entry.k for entry in entries if entry.n), default=0)
    if sum(entry.n for entry in entries) * max(widest, 1) > MAX_CELLS:
        return f"more than {MAX_CELLS} positions times alternatives"
    if sum(entry.n_prompt or 0 for entry in entries) > MAX_CELLS:
        return f"more than {MAX_CELLS} prompt tokens"
    return None


def _directory(entries: Sequence[_Entry]) -> bytes:
    rows = [
        varint(entry.n) + varint(entry.k) + varint(0 if entry.n_prompt is None else entry.n_prompt + 1) + entry.digest
        for entry in entries
    ]
    return varint(len(entries)) + b"".join(rows)


def _read_directory(cursor: Cursor) -> list[_Entry]:
    entries = []
    for _ in range(cursor.varint()):
        n, k, prompt = cursor.varint(), cursor.varint(), cursor.varint()
        entries.append(_Entry(n, k, prompt - 1 if prompt else None, cursor.take(digest.SHORT)))
    return entries


def _listed(entries: Sequence[_Entry]) -> NDArray[np.bool_]:
    """bool[positions, widest k]: which cells the traces have."""
    widths = np.repeat([entry.k for entry in entries], [entry.n for entry in entries]).astype(np.intp)
    is_listed: NDArray[np.bool_] = np.arange(widths.max(initial=0)) < widths[:, None]
    return is_listed


def _gather(traces: Sequence[Trace], entries: Sequence[_Entry]) -> Table:
    is_listed = _listed(entries)
    ids, logprobs = np.zeros(is_listed.shape, np.uint32), np.zeros(is_listed.shape, np.uint32)
    start = 0
    for trace in traces:
        rows = slice(start, start := start + len(trace))
        if len(trace):  # an empty trace has no cells, however large its k
            ids[rows, : trace.k] = _ids_up(trace.alternative_ids)
            logprobs[rows, : trace.k] = _bits(trace.alternative_logprobs)
    return Table(
        token_ids=_end_to_end([_ids_up(trace.token_ids) for trace in traces]),
        logprobs=_end_to_end([_bits(trace.logprobs) for trace in traces]),
        alternative_ids=ids,
        alternative_logprobs=logprobs,
        is_listed=is_listed,
        prompt_token_ids=_end_to_end([_ids_up(t.prompt_token_ids) for t in traces if t.prompt_token_ids is not None]),
    )


def _prompts(entries: Sequence[_Entry]) -> list[int]:
    """How many prompt ids the block holds for each trace."""
    return [entry.n_prompt or 0 for entry in entries]


def _trace(entries: Sequence[_Entry], table: Table, slot: int) -> Trace:
    entry, before = entries[slot], entries[:slot]
    start = sum(other.n for other in before)
    prompt_start = sum(other.n_prompt or 0 for other in before)
    rows, shape = slice(start, start + entry.n), (entry.n, entry.k)
    prompt = None
    if entry.n_prompt is not None:
        prompt = _ids_down(table.prompt_token_ids[prompt_start : prompt_start + entry.n_prompt])
    trace = Trace(
        token_ids=_ids_down(table.token_ids[rows]),
        logprobs=table.logprobs[rows].copy().view(np.float32),
        alternative_ids=_ids_down(table.alternative_ids[rows, : entry.k]).reshape(shape),
        alternative_logprobs=table.alternative_logprobs[rows, : entry.k].copy().view(np.float32).reshape(shape),
        prompt_token_ids=prompt,
    )
    if trace.digest != entry.digest:
        raise TraceDamaged(f"The stored trace in slot {slot} does not match its digest. {AGAIN}")
    return trace


def _ids_up(ids: NDArray[np.int32]) -> Words:
    return np.ascontiguousarray(ids, dtype=np.int32).view(np.uint32) + np.uint32(1)


def _ids_down(ids: Words) -> NDArray[np.int32]:
    return np.ascontiguousarray(ids - np.uint32(1)).view(np.int32)


def _bits(logprobs: NDArray[np.float32]) -> Words:
    return np.ascontiguousarray(logprobs, dtype=np.float32).view(np.uint32)


def _end_to_end(columns: Sequence[Words]) -> Words:
    return np.concatenate(columns) if columns else np.zeros(0, np.uint32)


def _compress(groups: Sequence[bytes], size: int) -> bytes:
    """One frame; each group ends a zstd block, so that it gets an entropy table of its own."""
    frame = zstandard.ZstdCompressionParameters.from_level(
        LEVEL, source_size=max(size, 1), write_content_size=0, write_checksum=0, write_dict_id=0
    )
    compressor = zstandard.ZstdCompressor(compression_params=frame).compressobj()
    parts: list[bytes] = []
    for group in filter(None, groups):
        if parts:
            parts.append(compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
        parts.append(compressor.compress(group))
    return b"".join([*parts, compressor.flush()])


def _most_bytes(entries: Sequence[_Entry]) -> int:
    """The most that the columns of such traces can take: every gap a misfit, every chosen token a stray."""
    n_positions, n_cells = sum(entry.n for entry in entries), sum(entry.n * entry.k for entry in entries)
    return 9 * n_positions + 12 * n_cells + 4 * sum(entry.n_prompt or 0 for entry in entries)


def _decompress(cursor: Cursor, most: int) -> bytes:
    """The columns, exactly as long as the block says and at most `most`. The frame is the rest of the block."""
    size = cursor.varint()
    if size > most:
        raise TraceDamaged(f"The trace block asks for {size} bytes where {most} are the most it can need. {AGAIN}")
    try:
        columns = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompress(
            cursor.rest(), max_output_size=max(size, 1), read_across_frames=False, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise TraceDamaged(f"The trace block cannot be unpacked ({error}). {AGAIN}") from error
    if len(columns) != size:
        raise TraceDamaged(f"The trace block unpacks to {len(columns)} bytes in place of {size}. {AGAIN}")
    return columns
