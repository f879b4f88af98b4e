"""Per-case columns of a repeat as bytes, so that a page or a comparison reads no response.

Every column is little-endian and in the order of case indexes; missing is a value of its own in each. What does
not have the size that its column must have is refused with ColumnsDamaged.
"""

import json
from collections.abc import Sequence

import numpy as np
import zstandard
from numpy.typing import NDArray

from evalboard.core import digest
from evalboard.core.errors import EvalboardError

NO_BUCKET = 65535
MAX_REASONS_BYTES = 1 << 28  # a thousand characters for each of 200,000 cases
_NO_DIGEST = bytes(digest.SHORT)


class ColumnsDamaged(EvalboardError):
    """A packed column does not have the size or form that it was stored with."""

    code = "columns_damaged"
    title = "Stored scores or digests cannot be read"
    status = 500


def pack_scores(scores: NDArray[np.float64]) -> bytes:
    """8 bytes a case, NaN where missing. Raises ValueError for a score outside [0, 1]."""
    if not (np.isnan(scores) | ((scores >= 0) & (scores <= 1))).all():
        raise ValueError("a score is a number from 0 to 1, or NaN where it is missing")
    return scores.astype("<f8", copy=False).tobytes()


def unpack_scores(packed: bytes, n_cases: int | None = None) -> NDArray[np.float64]:
    """float64[n_cases], read-only."""
    return _column(packed, "<f8", n_cases, "scores").astype(np.float64, copy=False)


def pack_chances(chances: NDArray[np.float32]) -> bytes:
    """4 bytes a case, NaN where unknown."""
    return chances.astype("<f4", copy=False).tobytes()


def unpack_chances(packed: bytes, n_cases: int | None = None) -> NDArray[np.float32]:
    """float32[n_cases], read-only."""
    return _column(packed, "<f4", n_cases, "flip chances").astype(np.float32, copy=False)


def pack_digests(digests: Sequence[bytes | None]) -> bytes:
    """16 bytes a case, zeros where missing."""
    if any(found is not None and len(found) != digest.SHORT for found in digests):
        raise ValueError(f"a digest has {digest.SHORT} bytes")
    return b"".join(_NO_DIGEST if found is None else found for found in digests)


def unpack_digests(packed: bytes, n_cases: int | None = None) -> list[bytes | None]:
    size = digest.SHORT
    _check_size(packed, size, n_cases, "digests")
    raw = bytes(packed)
    cut = (raw[start : start + size] for start in range(0, len(raw), size))
    return [None if found == _NO_DIGEST else found for found in cut]


def pack_buckets(buckets: Sequence[int | None]) -> bytes:
    """2 bytes a case: an index into the repeat's list of bucket ids, NO_BUCKET where missing."""
    if any(index is not None and not 0 <= index < NO_BUCKET for index in buckets):
        raise ValueError(f"a repeat has at most {NO_BUCKET} buckets")
    return np.array([NO_BUCKET if index is None else index for index in buckets], dtype="<u2").tobytes()


def unpack_buckets(packed: bytes, n_cases: int | None = None) -> NDArray[np.uint16]:
    """uint16[n_cases], read-only; NO_BUCKET where missing."""
    return _column(packed, "<u2", n_cases, "buckets").astype(np.uint16, copy=False)


def pack_marks(marks: NDArray[np.uint8]) -> bytes | None:
    """1 byte a case, as `core.live_answers` has marks; None where no answer carries one."""
    return marks.tobytes() if marks.any() else None


def unpack_marks(packed: bytes | None, n_cases: int) -> NDArray[np.uint8]:
    """uint8[n_cases], read-only where there is any."""
    if packed is None:
        return np.zeros(n_cases, np.uint8)
    return _column(packed, "u1", n_cases, "marks").astype(np.uint8, copy=False)


def pack_reasons(reasons: Sequence[str | None]) -> bytes:
    """One sentence a case, or None: a JSON list under zstd. Raises ValueError where they are too long to read back."""
    text = json.dumps(list(reasons), separators=(",", ":")).encode()
    if len(text) > MAX_REASONS_BYTES:
        raise ValueError(f"the reasons of a repeat take more than {MAX_REASONS_BYTES} bytes")
    return zstandard.compress(text)


def unpack_reasons(packed: bytes, n_cases: int | None = None) -> list[str | None]:
    try:
        size = zstandard.frame_content_size(packed)
        if not 0 <= size <= MAX_REASONS_BYTES:
            raise _damaged("reasons", f"they ask for {size} bytes")
        reasons = json.loads(zstandard.ZstdDecompressor().decompress(packed, allow_extra_data=False))
    except (zstandard.ZstdError, ValueError) as error:
        raise _damaged("reasons", str(error)) from error
    if not isinstance(reasons, list) or not all(reason is None or isinstance(reason, str) for reason in reasons):
        raise _damaged("reasons", "they are not a list of sentences")
    if n_cases is not None and len(reasons) != n_cases:
        raise _damaged("reasons", f"there are {len(reasons)} for {n_cases} cases")
    return reasons


def _column(packed: bytes, dtype: str, n_cases: int | None, name: str) -> NDArray[np.generic]:
    _check_size(packed, np.dtype(dtype).itemsize, n_cases, name)
    return np.frombuffer(packed, dtype=dtype)


def _check_size(packed: bytes, size: int, n_cases: int | None, name: str) -> None:
    if len(packed) % size or (n_cases is not None and len(packed) != n_cases * size):
        cases = "whole cases" if n_cases is None else f"{n_cases} cases"
        raise _damaged(name, f"{len(packed)} bytes are not {size} for each of {cases}")


def _damaged(name: str, fact: str) -> ColumnsDamaged:
    return ColumnsDamaged(f"The stored {name} of a repeat are damaged: {fact}. Score the run again.")
