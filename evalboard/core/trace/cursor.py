"""Reading bytes front to back, never past the end."""

import numpy as np
from numpy.typing import NDArray

from evalboard.core.errors import TraceDamaged

AGAIN = "Run the case again, or restore the database from a backup."


class Cursor:
    """A place in a byte string. Every read raises TraceDamaged where the bytes run out."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise TraceDamaged(f"The trace block ends too early. {AGAIN}")
        self._at += size
        return self._data[self._at - size : self._at]

    def varint(self) -> int:
        """Return a number below 2**35: seven bits a byte, lowest first; the top bit says that more follow."""
        data, value = self._data, 0
        for shift in range(0, 35, 7):
            if self._at >= len(data):
                raise TraceDamaged(f"The trace block ends too early. {AGAIN}")
            byte = data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise TraceDamaged(f"The trace block holds an impossible number. {AGAIN}")

    def planes(self, count: int, n: int) -> list[NDArray[np.uint8]]:
        """Return the next `count` byte planes of n values each, the highest byte first."""
        return [np.frombuffer(self.take(n), dtype=np.uint8) for _ in range(count)]

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        """Raise TraceDamaged unless everything was read."""
        if self._at != len(self._data):
            raise TraceDamaged(f"The trace block holds more than its directory says. {AGAIN}")
