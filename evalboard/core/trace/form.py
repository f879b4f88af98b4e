"""Lay out a part's numbers: every stream is split into byte planes (docs/formats.md says why)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalboard.core.errors import TraceDamaged
from evalboard.core.trace import gaps
from evalboard.core.trace.cursor import AGAIN

Words = NDArray[np.uint32]

RANKS, TOPS, LOWERS, IDS, MISFITS = range(5)  # streams
WHOLE = 31  # in the grid field: logprobs below the top one are stored whole
_HAS_RANKS = 0x80
_LOWERS_AT = 4  # the bit of the lowest plane of lowers, in the byte that says which planes are plain


class Plane(NamedTuple):
    """Bytes `byte` to `byte + width` of each number of a stream, the lowest byte being 0."""

    stream: int
    byte: int
    width: int = 1


@dataclass(frozen=True, slots=True)
class Form:
    """The format of a part's numbers.

    grid: of the lowers, in steps of 2**-grid nats, or WHOLE. id_bytes: 1 to 4. has_ranks: else every rank is 0. plain:
    a bit for each plane of tops (0 to 3) and lowers (4 to 7) that is stored unpacked, after the frame.
    """

    grid: int
    id_bytes: int
    has_ranks: bool
    plain: int = 0

    @classmethod
    def unpack(cls, flags: int, plain: int) -> "Form":
        """Read the two bytes that `pack` wrote. Raises TraceDamaged if it cannot have written them."""
        form = cls(flags & 0x1F, (flags >> 5 & 3) + 1, bool(flags & _HAS_RANKS), plain)
        if form.grid != WHOLE and (form.grid > gaps.FINEST or plain & 0x80):
            raise TraceDamaged(f"The trace block holds an impossible grid. {AGAIN}")
        return form

    def pack(self) -> bytes:
        return bytes([self.grid | (self.id_bytes - 1) << 5 | (_HAS_RANKS if self.has_ranks else 0), self.plain])

    def number_planes(self) -> list[tuple[int, Plane]]:
        """Return the planes of tops and lowers, the highest byte first, each with its bit in `plain`."""
        lowest = range(4 if self.grid == WHOLE else 3)
        return [(byte, Plane(TOPS, byte)) for byte in reversed(range(4))] + [
            (_LOWERS_AT + byte, Plane(LOWERS, byte)) for byte in reversed(lowest)
        ]

    def packed_planes(self) -> list[Plane]:
        """Return the planes in a part's frame, in their order."""
        ranks = [Plane(RANKS, 0)] if self.has_ranks else []
        numbers = [plane for bit, plane in self.number_planes() if not self.plain >> bit & 1]
        return [*ranks, *numbers, *self.id_planes()]

    def id_planes(self) -> list[Plane]:
        """Return the planes of ids: the lower two bytes together, where what repeats is found at once."""
        higher = [Plane(IDS, byte) for byte in reversed(range(2, self.id_bytes))]
        return [*higher, Plane(IDS, 0, min(self.id_bytes, 2))]

    def plain_planes(self) -> list[Plane]:
        """Return the planes after a part's frame, in their order."""
        numbers = [plane for bit, plane in self.number_planes() if self.plain >> bit & 1]
        return [*numbers, Plane(MISFITS, 0, 4)]


def cut(words: Words, plane: Plane) -> bytes:
    """Return a plane of some numbers as bytes."""
    return (
        words.astype("<u4", copy=False)
        .view(np.uint8)
        .reshape(-1, 4)[:, plane.byte : plane.byte + plane.width]
        .tobytes()
    )


def put(words: Words, plane: Plane, data: bytes) -> None:
    """Set a plane of some numbers, which are little-endian, to the bytes that `cut` gave."""
    _bytes(words, plane)[:] = np.frombuffer(data, np.uint8).reshape(-1, plane.width)


def _bytes(words: NDArray[np.uint32], plane: Plane) -> NDArray[np.uint8]:
    return words.view(np.uint8).reshape(-1, 4)[:, plane.byte : plane.byte + plane.width]
