"""Short-lived counters, shared by a team's servers through Redis, else per process.

Callers must work without them: while Redis is down there is no number, and a request waits for it only once.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

from django.core.cache import caches
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

ALIAS = "counters"
SILENT_SECONDS = 15.0  # after Redis did not answer, it is not asked again for so long

_silent_until = float("-inf")


class WholeNumbers:
    """Stores numbers in Redis as text. Nothing is ever unpickled."""

    def __init__(self, protocol: int | None = None) -> None:
        """`protocol` is what Django gives every serializer; numbers have none."""

    def dumps(self, value: int) -> int:
        return value

    def loads(self, data: bytes) -> int:
        return int(data)


def count(key: str, *, seconds: int) -> int | None:
    """Add one to the number of this name, which begins at 0 and is forgotten `seconds` after it began.

    None where Redis is away: then whoever asks lets pass what it would have counted.
    """

    def add(cache: Any) -> int:
        try:
            return 1 if cache.add(key, 1, timeout=seconds) else int(cache.incr(key))
        except ValueError:  # forgotten in between
            return 1

    n: int | None = _ask(add)
    return n


def remember(key: str, *, seconds: int) -> None:
    """Remember this name for `seconds` from now on."""
    _ask(lambda cache: cache.set(key, 1, timeout=seconds))


def is_remembered(key: str) -> bool:
    """Tell whether a name was remembered lately; False where Redis is away."""
    return _ask(lambda cache: cache.get(key)) is not None


def _ask(question: Callable[[Any], Any]) -> Any:
    """Return what the cache says, None where Redis is away."""
    global _silent_until
    if time.monotonic() < _silent_until:
        return None
    try:
        return question(caches[ALIAS])
    except (RedisError, OSError) as problem:
        _silent_until = time.monotonic() + SILENT_SECONDS
        logger.warning("Requests are not counted for %.0f s, Redis does not answer: %s", SILENT_SECONDS, problem)
        return None
