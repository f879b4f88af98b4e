"""What pages and the API say when the database is away or its disk is full."""

import logging
import time
from dataclasses import dataclass

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError

logger = logging.getLogger(__name__)

# https://www.postgresql.org/docs/current/errcodes-appendix.html
DISK_FULL = "53100"
STOPPED = "57014"  # by statement_timeout, or by an administrator
READ_ONLY = "25006"  # a standby that has not taken over yet answers, but stores nothing
DISK_FULL_HOLDS_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Outage:
    """What is wrong, what still works, and what to do, in one sentence each. retry_after: seconds."""

    status: int
    code: str
    title: str
    wrong: str
    goes_on: str
    to_do: str
    retry_after: int | None

    @property
    def detail(self) -> str:
        return f"{self.wrong} {self.goes_on}"


AWAY = Outage(
    status=503,
    code="database_away",
    title="Evalboard cannot answer now",
    wrong="The database does not answer.",
    goes_on="Runs are kept in it and go on where they were once it is back.",
    to_do="Try again in a moment. If you sent something, look first whether it was stored.",
    retry_after=5,
)
SLOW = Outage(
    status=503,
    code="too_slow",
    title="This took too long",
    wrong=f"The database worked on one step of this for {settings.STATEMENT_SECONDS:g} seconds, and was then stopped.",
    goes_on="Nothing of what you sent was stored, and everything else goes on.",
    to_do="Ask for less at once, by a filter or a smaller page; or try again when less is going on.",
    retry_after=30,
)
FULL = Outage(
    status=507,
    code="disk_full",
    title="The database's disk is full",
    wrong="The disk on which PostgreSQL keeps its data is full, and nothing of what you sent was stored.",
    goes_on="What was stored before can be read.",
    to_do="Ask your administrator to free space on that disk; then send it again.",
    retry_after=None,
)

_disk_was_full_at = float("-inf")


def notice(exc: BaseException | None) -> Outage | None:
    """Log and remember the outage behind an exception, and return it; None for other exceptions."""
    global _disk_was_full_at
    if not isinstance(exc, OperationalError | InterfaceError | InternalError):
        return None
    state = getattr(exc.__cause__, "sqlstate", None)
    if isinstance(exc, InternalError) and state != READ_ONLY:
        return None
    if state == DISK_FULL:
        _disk_was_full_at = time.monotonic()
        logger.error("The database's disk is full: %s", exc)
        return FULL
    if state == STOPPED:
        logger.warning("statement_stopped: %s", exc)
        return SLOW
    logger.warning("The database is away: %s", exc)
    return AWAY


def was_disk_full_lately() -> bool:
    """Return whether the database reported a full disk to this process in the last minute."""
    return time.monotonic() - _disk_was_full_at < DISK_FULL_HOLDS_SECONDS
