"""Rules for retrying a call and pausing an endpoint, without a clock of their own."""

import random
import re
import threading
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from evalboard.core.trace import plain_word
from evalboard.importers.field_values import http_date

MAX_TRIES = 4
TRIES_WITHIN_SECONDS = 600.0
# Another try may fare better. The last two rows are what networks in front of servers say.
RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, *range(520, 525), 529})
TOO_MANY = 429
# Of errors that may pass, the names by which servers and gateways call them, and the statuses that they stand for.
PASSING_NAMES = {
    TOO_MANY: (
        *("rate_limit", "rate_limited", "rate_limit_error", "rate_limit_exceeded", "rate_limit_reached"),
        *(
            "ratelimiterror",
            "too_many_requests",
            "resource_exhausted",
            "throttled",
            "throttling",
            "throttling_exception",
        ),
    ),
    500: ("server_error", "internal_error", "internal_server_error", "api_error", "engine_error"),
    502: ("bad_gateway", "network_error", "connection_error", "upstream_error", "provider_error"),
    503: (
        *(
            "overloaded",
            "overloaded_error",
            "engine_overloaded",
            "server_overloaded",
            "model_overloaded",
            "unavailable",
        ),
        *(
            "service_unavailable",
            "service_unavailable_error",
            "insufficient_system_resource",
            "temporarily_unavailable",
        ),
    ),
    504: ("timeout", "timed_out", "gateway_timeout", "request_timeout", "deadline_exceeded"),
}
LONGEST_BACKOFF_SECONDS = 30.0
LONGEST_WAIT_SECONDS = 60.0  # what a call waits for the server; for longer the endpoint rests
LONGEST_WISH_SECONDS = 86_400.0
FAILURES_BEFORE_REST = 5
FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 30.0, 600.0

_BY_NAME = {plain_word(name): status for status, names in PASSING_NAMES.items() for name in names}
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def passing_status(values: Iterable[Any]) -> int | None:
    """Return the status of a temporary error; None if none of the values means one.

    values: from wherever an error describes itself. Each is a status, as a number or in digits, or a known name.
    """
    for value in values:
        number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
        if isinstance(number, int) and number in RETRIED:
            return number
        if isinstance(value, str) and (named := _BY_NAME.get(plain_word(value))):
            return named
    return None


def backoff_seconds(n_failed: int, randomness: random.Random) -> float:
    """Return the wait after n_failed tries: random up to 1 s, then 2 s, then 4 s (full jitter)."""
    return randomness.uniform(0, min(LONGEST_BACKOFF_SECONDS, 2.0 ** (n_failed - 1)))


def wished_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the pause that the server requests, up to a day; None without a readable one.

    headers: of the answer, names in small letters. `Retry-After-Ms` and `Retry-After` count; without them the limits
    that are used up. A moment is read by the server's own clock, its `Date`, and by `now` without one: the worker's may
    be off.
    """
    now = http_date(headers.get("date", "")) or now
    milliseconds = headers.get("retry-after-ms", "").strip()
    wish = _retry_after(headers.get("retry-after", ""), now)
    if _NUMBER.fullmatch(milliseconds):
        wish = float(milliseconds) / 1000  # the finer of the two
    if wish is None:
        resets = {
            name: value
            for name, value in headers.items()
            if name.startswith("x-ratelimit-reset")
            and headers.get(name.replace("reset", "remaining"), "0").strip() in ("", "0")
        }
        wishes = [_reset(value, now) for value in resets.values()]
        wish = max((each for each in wishes if each is not None), default=None)
    return None if wish is None else min(max(wish, 0.0), LONGEST_WISH_SECONDS)


def rest_seconds(n_failures: int) -> float:
    """Return an endpoint's pause after failures in a row: 30 s after five, then doubling."""
    doublings = min(max(n_failures - FAILURES_BEFORE_REST, 0), 10)
    return min(FIRST_REST_SECONDS * 2.0**doublings, LONGEST_REST_SECONDS)


class Circuit:
    """Counts failed tries in a row over all calls to an endpoint; from five on the endpoint is paused.

    A try that began before the last one failed counts with it: eight calls that one hiccup ends are one failure.
    """

    def __init__(self, n_failures: int) -> None:
        self._lock = threading.Lock()
        self._n_failures = n_failures
        self._n_counted = 0
        self._n_answers = 0

    @property
    def n_failures(self) -> int:
        """Failures in a row up to now."""
        return self._n_failures

    @property
    def n_answers(self) -> int:
        """Return how often the endpoint has answered, in any way."""
        return self._n_answers

    @property
    def is_open(self) -> bool:
        """Return whether the endpoint should pause; after its pause, whether to try a single call first."""
        return self._n_failures >= FAILURES_BEFORE_REST

    def begin(self) -> int:
        """Note that a try begins; return what `fail` wants to know of it."""
        return self._n_counted

    def fail(self, begun: int) -> None:
        """Count a failed try."""
        with self._lock:
            if begun == self._n_counted:
                self._n_counted += 1
                self._n_failures += 1

    def succeed(self) -> None:
        """Record that the endpoint answered, in any way."""
        with self._lock:
            self._n_failures = 0
            self._n_answers += 1


def _retry_after(value: str, now: datetime) -> float | None:
    if _NUMBER.fullmatch(value.strip()):
        return float(value)
    at = http_date(value)
    return None if at is None else (at - now).total_seconds()


def _reset(value: str, now: datetime) -> float | None:
    """Return seconds from "1m30.5s", from "7.5", or until a moment in Unix seconds or milliseconds."""
    value = value.strip()
    if _NUMBER.fullmatch(value):
        number = float(value)
        if number > 1e11:
            return number / 1000 - now.timestamp()
        return number - now.timestamp() if number > 1e8 else number
    spans = _SPAN.findall(value)
    if not spans or "".join(amount + unit for amount, unit in spans) != value:
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in spans)
