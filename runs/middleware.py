"""One id for each request: in the answer's header, in every problem and in every log line."""

import logging
import re
import secrets
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-Id"
# A gateway's own id is kept where it can stand in a log line as it is.
SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NO_REQUEST = "-"

_current: ContextVar[str] = ContextVar("request_id", default=NO_REQUEST)


class RequestIdMiddleware:
    """Puts `request.request_id`; stands first, so that whatever fails after it can be named."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        asked = request.headers.get(HEADER, "")
        request_id = asked if SANE.fullmatch(asked) else secrets.token_hex(8)
        request.request_id = request_id  # type: ignore[attr-defined]
        _current.set(request_id)  # stays until the thread's next request: Django logs a 404 after the middleware
        response = self.get_response(request)
        response[HEADER] = request_id
        return response


class RequestIdFilter(logging.Filter):
    """Gives every log record `request_id`, "-" where the thread has not served a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = _current.get()
        return True
