"""Pack the reasons of a repeat's scores in frames, so that one case is read without all others.

A directory comes first, in a zstd skippable frame: the end of each frame, uint32, counted from the end of the
directory. Then come the frames, each the JSON list of a sentence, or null, for each of FRAME cases in a row, under
zstd.
"""

import json
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import zstandard

from evalboard.core.trace.case_columns import ColumnsDamaged

FRAME = 256  # cases
MAX_REASONS_BYTES = 1 << 28  # a thousand characters for each of 200,000 cases
_MARK = b"\x50\x2a\x4d\x18"  # zstd's for the first kind of skippable frame
_HEAD = struct.Struct("<4sI")


class ReasonPlace(NamedTuple):
    """The place of a case's reason: `size` bytes from `first` on, and index `at` in their list."""

    first: int
    size: int
    at: int


def pack_reasons(reasons: Sequence[str | None]) -> bytes:
    """Pack one sentence a case, or None. Raises ValueError where that gets too long."""
    packer = zstandard.ZstdCompressor()
    frames, n_bytes = [], 0
    for first in range(0, len(reasons), FRAME):
        text = json.dumps(list(reasons[first : first + FRAME]), separators=(",", ":")).encode()
        n_bytes += len(text)
        if n_bytes > MAX_REASONS_BYTES:
            raise ValueError(f"the reasons of a repeat take more than {MAX_REASONS_BYTES} bytes")
        frames.append(packer.compress(text))
    ends = np.cumsum([len(frame) for frame in frames], dtype="<u4").tobytes()
    return b"".join([_HEAD.pack(_MARK, len(ends)), ends, *frames])


def unpack_reasons(packed: bytes, n_cases: int | None = None) -> list[str | None]:
    """Return the reasons of all cases. Raises ColumnsDamaged."""
    reasons: list[str | None] = []
    n_bytes = 0
    for frame in _split(packed):
        n_bytes += _check_size(frame, MAX_REASONS_BYTES - n_bytes)
        reasons += _unpack(frame)
    if n_cases is not None and len(reasons) != n_cases:
        raise _damaged(f"there are {len(reasons)} for {n_cases} cases")
    return reasons


def directory_size(n_cases: int) -> int:
    """Return how many bytes the directory takes with so many cases."""
    return _HEAD.size + 4 * -(-n_cases // FRAME)


def find_reason(directory: bytes, case_index: int) -> ReasonPlace:
    """Return the place of a case's reason.

    directory: what was packed, or as much of its start as `directory_size` says. Raises ColumnsDamaged.
    """
    ends = _read_ends(directory)
    frame, index = divmod(case_index, FRAME)
    if frame >= len(ends):
        raise _damaged(f"there is none of case {case_index}")
    first = ends[frame - 1] if frame else 0
    return ReasonPlace(_HEAD.size + 4 * len(ends) + first, ends[frame] - first, index)


def unpack_frame_of_reasons(frame: bytes) -> list[str | None]:
    """Return the reasons in the bytes of a `ReasonPlace`. Raises ColumnsDamaged."""
    _check_size(frame, MAX_REASONS_BYTES)
    return _unpack(frame)


def _split(packed: bytes) -> list[bytes]:
    ends = _read_ends(packed)
    body = packed[_HEAD.size + 4 * len(ends) :]
    if len(body) != (ends[-1] if ends else 0):
        raise _damaged(f"{len(body)} bytes are not what their directory says")
    return [body[first:end] for first, end in zip([0, *ends], ends, strict=False)]


def _read_ends(packed: bytes) -> list[int]:
    """Return where each frame ends, in bytes from the end of the directory."""
    if packed[:4] != _MARK:
        raise _damaged("they have no directory")
    size = _HEAD.unpack_from(packed)[1] if len(packed) >= _HEAD.size else -1
    ends = packed[_HEAD.size : _HEAD.size + max(size, 0)]
    if size % 4 or len(ends) != size:
        raise _damaged("their directory is cut off")
    values: list[int] = np.frombuffer(ends, "<u4").tolist()
    if values != sorted(values):
        raise _damaged("their directory runs backwards")
    return values


def _check_size(frame: bytes, most: int) -> int:
    try:
        size: int = zstandard.frame_content_size(frame)
    except zstandard.ZstdError as error:
        raise _damaged(str(error)) from error
    if not 0 <= size <= most:
        raise _damaged(f"they ask for {size} bytes")
    return size


def _unpack(frame: bytes) -> list[str | None]:
    try:
        reasons = json.loads(zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False))
    except (zstandard.ZstdError, ValueError) as error:
        raise _damaged(str(error)) from error
    if not isinstance(reasons, list) or not set(map(type, reasons)) <= {str, type(None)}:
        raise _damaged("they are not a list of sentences")
    return reasons


def _damaged(problem: str) -> ColumnsDamaged:
    return ColumnsDamaged(f"The stored reasons of a repeat are damaged: {problem}. Score the run again.")
