"""The id of the request that a log line is about.

It goes with a ring to the worker that hears it (runs/work/dispatch.py), whose lines then name it too.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# An id from outside is kept where it can stand in a log line as it is.
SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NO_REQUEST = "-"

current: ContextVar[str] = ContextVar("request_id", default=NO_REQUEST)


@contextmanager
def about(request_id: object) -> Iterator[None]:
    """Log lines in here name this request; what is no id is left out."""
    token = current.set(request_id if isinstance(request_id, str) and SANE.fullmatch(request_id) else NO_REQUEST)
    try:
        yield
    finally:
        current.reset(token)


class RequestIdFilter(logging.Filter):
    """Gives every log record `request_id`, "-" where it is about none."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = current.get()
        return True
