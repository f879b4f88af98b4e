"""Estimate a server clock's offset from the Date header of its answers, in whole seconds."""

from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# Seconds by which the server's clock is ahead of ours: at least, and at most.
ClockAhead = tuple[float, float]


def measure_clock(date: str, began: datetime, ended: datetime) -> ClockAhead | None:
    """Return the offset that one answer shows; None if it has no readable Date.

    The server wrote `date` between `began` and `ended`, at some time within the second that it names.
    """
    try:
        at = parsedate_to_datetime(date)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    low, high = (at - ended).total_seconds(), (at - began).total_seconds() + 1
    return round(low, 3), round(high, 3)


def combine_clocks(seen: Iterable[ClockAhead | None]) -> ClockAhead | None:
    """Return the intersection of several offsets, narrower than each; None if there are none.

    Where no one distance fits all, as of several servers or of a clock that was set, the first is above the second.
    """
    known = [each for each in seen if each is not None]
    return (max(low for low, _ in known), min(high for _, high in known)) if known else None
