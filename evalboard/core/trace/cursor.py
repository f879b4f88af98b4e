"""Reading bytes front to back, never past the end."""

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

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        """Raise TraceDamaged unless everything was read."""
        if self._at != len(self._data):
            raise TraceDamaged(f"The trace block holds more than its directory says. {AGAIN}")
