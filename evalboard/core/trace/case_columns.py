"""Per-case columns of a repeat as bytes, so that a page or a comparison reads no response.

Every column is little-endian and in the order of case indexes; missing is a value of its own in each. What does
not have the size that its column must have is refused with ColumnsDamaged.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evalboard.core import digest
from evalboard.core.errors import EvalboardError

NO_BUCKET = 65535
_NO_DIGEST = bytes(digest.SHORT)


class ColumnsDamaged(EvalboardError):
    """A packed column does not have the size or form that it was stored with."""

    code = "columns_damaged"
    title = "Stored scores or digests cannot be read"
    status = 500


def pack_scores(scores: NDArray[np.float64]) -> bytes:
    """Pack into 8 bytes a case, NaN where missing. Raises ValueError for a score outside [0, 1]."""
    if not (np.isnan(scores) | ((scores >= 0) & (scores <= 1))).all():
        raise ValueError("a score is a number from 0 to 1, or NaN where it is missing")
    return scores.astype("<f8", copy=False).tobytes()


def unpack_scores(packed: bytes, n_cases: int | None = None) -> NDArray[np.float64]:
    """Return float64[n_cases], read-only."""
    return _column(packed, "<f8", n_cases, "scores").astype(np.float64, copy=False)


def pack_chances(chances: NDArray[np.float32]) -> bytes:
    """Pack into 4 bytes a case, NaN where unknown."""
    return chances.astype("<f4", copy=False).tobytes()


def unpack_chances(packed: bytes, n_cases: int | None = None) -> NDArray[np.float32]:
    """Return float32[n_cases], read-only."""
    return _column(packed, "<f4", n_cases, "flip chances").astype(np.float32, copy=False)


def pack_digests(digests: Sequence[bytes | None]) -> bytes:
    """Pack into 16 bytes a case, zeros where missing."""
    if any(each is not None and len(each) != digest.SHORT for each in digests):
        raise ValueError(f"a digest has {digest.SHORT} bytes")
    return b"".join(_NO_DIGEST if each is None else each for each in digests)


def unpack_digests(packed: bytes, n_cases: int | None = None) -> NDArray[np.uint64]:
    """Return uint64[n_cases, 2], read-only: the two halves of each digest, zeros where missing."""
    _check_size(packed, digest.SHORT, n_cases, "digests")
    return np.frombuffer(packed, "<u8").reshape(-1, 2).astype(np.uint64, copy=False)


def differ(ours: NDArray[np.uint64], theirs: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Tell which digests, uint64[…, 2], differ.

    Compares the halves separately: a reduction over a last axis of two takes many times as long.
    """
    differs: NDArray[np.bool_] = (ours[..., 0] != theirs[..., 0]) | (ours[..., 1] != theirs[..., 1])
    return differs


def pack_answers(answers: Sequence[str | None]) -> bytes:
    """Pack into 8 bytes a case, equal where two responses gave one answer; zeros where there is none."""
    keys = [0 if each is None else int.from_bytes(digest.text_digest(each)[:8]) or 1 for each in answers]
    return np.array(keys, dtype="<u8").tobytes()


def unpack_answers(packed: bytes, n_cases: int | None = None) -> NDArray[np.uint64]:
    """Return uint64[n_cases], read-only."""
    return _column(packed, "<u8", n_cases, "answers").astype(np.uint64, copy=False)


def pack_buckets(buckets: Sequence[int | None]) -> bytes:
    """Pack into 2 bytes a case: an index into the repeat's list of bucket ids, NO_BUCKET where missing."""
    if any(index is not None and not 0 <= index < NO_BUCKET for index in buckets):
        raise ValueError(f"a repeat has at most {NO_BUCKET} buckets")
    return np.array([NO_BUCKET if index is None else index for index in buckets], dtype="<u2").tobytes()


def unpack_buckets(packed: bytes, n_cases: int | None = None) -> NDArray[np.uint16]:
    """Return uint16[n_cases], read-only; NO_BUCKET where missing."""
    return _column(packed, "<u2", n_cases, "buckets").astype(np.uint16, copy=False)


def pack_marks(marks: NDArray[np.uint8]) -> bytes | None:
    """Pack into 1 byte a case, as `core.stats.live_answers` has marks; None where no answer carries one."""
    return marks.tobytes() if marks.any() else None


def unpack_marks(packed: bytes | None, n_cases: int) -> NDArray[np.uint8]:
    """Return uint8[n_cases], read-only where there is any."""
    if packed is None:
        return np.zeros(n_cases, np.uint8)
    return _column(packed, "u1", n_cases, "marks").astype(np.uint8, copy=False)


def pack_selection(is_chosen: NDArray[np.bool_]) -> bytes:
    """Pack bool[n_cases] into a bit a case, the first case in the lowest bit."""
    return np.packbits(is_chosen, bitorder="little").tobytes()


def unpack_selection(packed: bytes, n_cases: int) -> NDArray[np.bool_]:
    """Return bool[n_cases]."""
    if len(packed) != -(-n_cases // 8):
        raise _damaged("selected cases", f"{len(packed)} bytes are no bit for each of {n_cases} cases")
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=n_cases, bitorder="little").astype(np.bool_)


def _column(packed: bytes, dtype: str, n_cases: int | None, name: str) -> NDArray[np.generic]:
    _check_size(packed, np.dtype(dtype).itemsize, n_cases, name)
    return np.frombuffer(packed, dtype=dtype)


def _check_size(packed: bytes, size: int, n_cases: int | None, name: str) -> None:
    if len(packed) % size or (n_cases is not None and len(packed) != n_cases * size):
        cases = "whole cases" if n_cases is None else f"{n_cases} cases"
        raise _damaged(name, f"{len(packed)} bytes are not {size} for each of {cases}")


def _damaged(name: str, fact: str) -> ColumnsDamaged:
    return ColumnsDamaged(f"The stored {name} of a repeat are damaged: {fact}. Score the run again.")
