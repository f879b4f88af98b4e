"""Blocks of format version 1 as earlier versions wrote them, to try reading them on more than was recorded."""

import zlib
from collections.abc import Sequence

import numpy as np
import zstandard
from numpy.typing import NDArray

from evalboard.core.trace import gaps
from evalboard.core.trace.trace import Trace

Words = NDArray[np.uint32]
Plane = NDArray[np.uint8]
STRAY, WHOLE, HAS_RANKS = 255, 31, 0x80


def encode(traces: Sequence[Trace]) -> bytes:
    """Return the block of version 1 that holds these traces."""
    flags, groups = _columns(traces)
    directory = varint(len(traces)) + b"".join(
        varint(len(trace)) + varint(trace.k) + varint(_n_prompt(trace)) + trace.digest for trace in traces
    )
    size = sum(len(group) for group in groups)
    return seal(b"".join([b"EvT\x01", directory, bytes([flags]), varint(size), _compress(groups, size)]))


def seal(body: bytes) -> bytes:
    """Return a block with these bytes and the checksum that goes with them."""
    return body + zlib.crc32(body).to_bytes(4, "little")


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _n_prompt(trace: Trace) -> int:
    return 0 if trace.prompt_token_ids is None else len(trace.prompt_token_ids) + 1


def _columns(traces: Sequence[Trace]) -> tuple[int, list[bytes]]:
    """Flags and columns, in groups that end a zstd block each."""
    widths = np.repeat([trace.k for trace in traces], [len(trace) for trace in traces]).astype(np.intp)
    is_listed = np.arange(widths.max(initial=0)) < widths[:, None]
    ids, logprobs = np.zeros(is_listed.shape, np.uint32), np.zeros(is_listed.shape, np.uint32)
    start = 0
    for trace in traces:
        rows = slice(start, start := start + len(trace))
        if len(trace):
            ids[rows, : trace.k] = _ids_up(trace.alternative_ids)
            logprobs[rows, : trace.k] = _bits(trace.alternative_logprobs)
    token_ids = _end_to_end([_ids_up(trace.token_ids) for trace in traces])
    own_logprobs = _end_to_end([_bits(trace.logprobs) for trace in traces])
    prompt_ids = _end_to_end([_ids_up(t.prompt_token_ids) for t in traces if t.prompt_token_ids is not None])
    ranks = np.full(len(token_ids), STRAY, np.uint8)
    for rank in reversed(range(is_listed.shape[1])):
        is_same = (ids[:, rank] == token_ids) & (logprobs[:, rank] == own_logprobs) & is_listed[:, rank]
        ranks[is_same] = rank
    strays = ranks == STRAY
    below = is_listed[:, 1:]
    lower = logprobs[:, 1:].T[below.T]
    lowered = gaps.find_steps(np.broadcast_to(logprobs[:, :1], below.shape).T[below.T], lower)
    misfits, grid = lower[:0], WHOLE
    if lowered is not None:
        misfits, grid, lower = lower[lowered.steps == gaps.MISFIT], lowered.grid, lowered.steps
    cells, stray_ids = ids.T[is_listed.T], token_ids[strays]
    largest = max(int(each.max(initial=0)) for each in (cells, stray_ids, prompt_ids))
    width = max(1, (largest.bit_length() + 7) // 8)
    tops = _planes(logprobs[:, :1].T[is_listed[:, :1].T], 4)
    lowers, id_planes = _planes(lower, 4 if grid == WHOLE else 3), _planes(cells, width)
    exceptions = [*_planes(stray_ids, width), *_planes(own_logprobs[strays], 4), *_planes(misfits, 4)]
    groups = [
        [ranks] if ranks.any() else [],
        tops[:1],
        lowers[:1],
        id_planes[:-1],
        [*tops[1:], *lowers[1:], id_planes[-1], *exceptions],
        *([plane] for plane in _planes(prompt_ids, width)),
    ]
    flags = grid | (width - 1) << 5 | (HAS_RANKS if ranks.any() else 0)
    return flags, [b"".join(plane.tobytes() for plane in group) for group in groups]


def _compress(groups: Sequence[bytes], size: int) -> bytes:
    frame = zstandard.ZstdCompressionParameters.from_level(
        19, source_size=max(size, 1), write_content_size=0, write_checksum=0, write_dict_id=0
    )
    compressor = zstandard.ZstdCompressor(compression_params=frame).compressobj()
    parts: list[bytes] = []
    for group in filter(None, groups):
        if parts:
            parts.append(compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
        parts.append(compressor.compress(group))
    return b"".join([*parts, compressor.flush()])


def _planes(values: Words, width: int) -> list[Plane]:
    cut = values.astype("<u4").view(np.uint8).reshape(-1, 4)
    return [cut[:, byte] for byte in reversed(range(width))]


def _ids_up(ids: NDArray[np.int32]) -> Words:
    return np.ascontiguousarray(ids, dtype=np.int32).view(np.uint32) + np.uint32(1)


def _bits(logprobs: NDArray[np.float32]) -> Words:
    return np.ascontiguousarray(logprobs, dtype=np.float32).view(np.uint32)


def _end_to_end(columns: Sequence[Words]) -> Words:
    return np.concatenate(columns) if columns else np.zeros(0, np.uint32)
