"""Blocks of format version 1: one frame for all traces. Earlier versions wrote them; they are read, never written."""

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalboard.core import digest
from evalboard.core.errors import TraceDamaged
from evalboard.core.trace import packing, spans
from evalboard.core.trace.cursor import AGAIN, Cursor
from evalboard.core.trace.directory import refusal
from evalboard.core.trace.spans import TraceTable
from evalboard.core.trace.trace import Trace

VERSION = 1
_CHECKSUM = struct.Struct("<I")
_HEAD = 4  # magic, version


class _Entry(NamedTuple):  # made for every trace of a block, whichever is read: a dataclass takes twice as long
    """What the directory says of one trace; n_prompt is None where no prompt ids are kept."""

    n: int
    k: int
    n_prompt: int | None
    digest: bytes


def read_traces(data: bytes, slots: Sequence[int] | None = None) -> list[Trace]:
    """Return the traces in some slots of a block, or in all. Raises TraceDamaged unless each is what was stored.

    data: begins with magic and version, which are not looked at again.
    """
    entries, flags, columns = _unpack(data)
    chosen = range(len(entries)) if slots is None else slots
    for slot in chosen:
        if not 0 <= slot < len(entries):
            raise TraceDamaged(f"The trace block holds {len(entries)} traces and has no slot {slot}. {AGAIN}")
    n_prompt = [entry.n_prompt or 0 for entry in entries]
    n, k = [entry.n for entry in entries], [entry.k for entry in entries]
    tables = spans.read_spans(columns, flags, n, k, n_prompt, chosen)
    columns.end()
    return [_trace(entries[slot], slot, table) for slot, table in zip(chosen, tables, strict=True)]


def _unpack(data: bytes) -> tuple[list[_Entry], int, Cursor]:
    """Directory, flags and columns."""
    if len(data) < _HEAD + _CHECKSUM.size:
        raise TraceDamaged(f"The trace block ends too early. {AGAIN}")
    body, (checksum,) = data[: -_CHECKSUM.size], _CHECKSUM.unpack(data[-_CHECKSUM.size :])
    if zlib.crc32(body) != checksum:
        raise TraceDamaged(f"The trace block is damaged: its checksum does not match. {AGAIN}")
    cursor = Cursor(body[_HEAD:])
    entries = _read_directory(cursor)
    _check(entries)
    flags = cursor.take(1)[0]
    size = cursor.varint()
    most = _most_bytes(entries)
    if size > most:
        raise TraceDamaged(f"The trace block asks for {size} bytes where {most} are the most it can need. {AGAIN}")
    return entries, flags, Cursor(packing.Unpacker()(cursor.rest(), size))


def _read_directory(cursor: Cursor) -> list[_Entry]:
    entries = []
    for _ in range(cursor.varint()):
        n, k, prompt = cursor.varint(), cursor.varint(), cursor.varint()
        entries.append(_Entry(n, k, prompt - 1 if prompt else None, cursor.take(digest.SHORT)))
    return entries


def _check(entries: Sequence[_Entry]) -> None:
    n, k, n_prompt = (np.array([each[at] or 0 for each in entries], np.int64) for at in (0, 1, 2))
    reason = refusal(n, k, n_prompt, np.array([0, len(entries)]))
    if reason:
        raise TraceDamaged(f"The trace block's directory is impossible: {reason}. {AGAIN}")


def _most_bytes(entries: Sequence[_Entry]) -> int:
    """Return the most that the columns of such traces can take: every gap a misfit, every chosen token a stray."""
    n_positions, n_cells = sum(entry.n for entry in entries), sum(entry.n * entry.k for entry in entries)
    return 9 * n_positions + 12 * n_cells + 4 * sum(entry.n_prompt or 0 for entry in entries)


def _trace(entry: _Entry, slot: int, table: TraceTable) -> Trace:
    shape = (entry.n, entry.k)
    trace = Trace(
        token_ids=_ids_down(table.token_ids),
        logprobs=table.logprobs.copy().view(np.float32),
        alternative_ids=_ids_down(table.alternative_ids).reshape(shape),
        alternative_logprobs=table.alternative_logprobs.copy().view(np.float32).reshape(shape),
        prompt_token_ids=None if entry.n_prompt is None else _ids_down(table.prompt_token_ids),
    )
    if trace.digest != entry.digest:
        raise TraceDamaged(f"The stored trace in slot {slot} does not match its digest. {AGAIN}")
    return trace


def _ids_down(ids: NDArray[np.uint32]) -> NDArray[np.int32]:
    return np.ascontiguousarray(ids - np.uint32(1)).view(np.int32)
