"""Determine when a logged run ran, as far as the log's clock is plausible."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from evalboard.importers.records import LoggedRun

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)  # a clock that says less was never set
LEEWAY = timedelta(days=1)  # by how much another machine's clock may be ahead


@dataclass(frozen=True, slots=True)
class Times:
    """The times of a logged run. Start and end are None if not in the log."""

    imported_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def ran_at(self) -> datetime:
        """Return the run's time in lists and charts."""
        return self.started_at or self.finished_at or self.imported_at

    @property
    def ended_at(self) -> datetime:
        return self.finished_at or self.ran_at


def times_of(logged: LoggedRun, *, imported_at: datetime) -> Times:
    """Return a log's times; an end before the start is none."""
    started_at, finished_at = (believed(one, now=imported_at) for one in (logged.started_at, logged.finished_at))
    if started_at and finished_at and finished_at < started_at:
        finished_at = None
    return Times(imported_at, started_at, finished_at)


def believed(moment: datetime | None, *, now: datetime) -> datetime | None:
    """Return a moment of a log, assuming UTC without a zone; None if it is implausible."""
    if moment is None:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(aware, now) if EARLIEST <= aware <= now + LEEWAY else None
