"""The database's clock, by which all shared times are recorded, since machines' clocks may be off.

`DatabaseClock` gives it for frequent use, or while the database is away.
"""

import threading
import time
from datetime import UTC, datetime

from django.db import connection

RENEWED_SECONDS = 60.0  # a monotonic clock runs away from the database's by a few milliseconds in that time


def database_now() -> datetime:
    """Return the time by the database's clock, also within a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


class DatabaseClock:
    """The database's time between two statements, by its last value and our monotonic clock.

    This machine's wall clock has no part in it, so that setting it changes nothing; until the database was heard it has
    to do. Any thread may call it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # A moment by the monotonic clock, which one it was by the database's, and how far that may be off: seconds.
        self._known: tuple[float, float, float] | None = None

    def hear(self, at: float, *, sent: float, answered: float) -> None:
        """Adjust to the database's clock, read in Unix seconds between two monotonic moments."""
        doubt = (answered - sent) / 2
        with self._lock:
            if self._known is None or doubt <= self._known[2] or answered - self._known[0] > RENEWED_SECONDS:
                self._known = (sent + doubt, at, doubt)

    def now(self) -> datetime:
        """Return the time."""
        known = self._known
        if known is None:
            return datetime.now(UTC)
        return datetime.fromtimestamp(known[1] + time.monotonic() - known[0], UTC)

    def machine_ahead(self) -> float | None:
        """Return by how many seconds this machine's wall clock is ahead; None until the database was heard."""
        return None if self._known is None else round((datetime.now(UTC) - self.now()).total_seconds(), 3)


def instant(at: datetime | None) -> str | None:
    """Return a time as messages and files carry it: RFC 3339 in UTC."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")
