"""Calls in progress to an external server: one case's with its tries, and all of one `decode`."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, SimpleQueue

from evalboard.calling.calls import Answered, CallOutcome, DecodeRequest
from evalboard.calling.request import Built
from evalboard.calling.wire import HttpReply
from evalboard.core.trace import Failed

SIGNAL_SECONDS = 0.5


class CalledOff(Exception):
    """The caller no longer needs this call."""


@dataclass(slots=True)
class CaseCall:
    """One case's call: how many tries it has had, and what the last of them was and brought.

    n_waits: how many of the tries the server put off until a time that it named. n_answers: how often the endpoint had
    answered before the last try.
    """

    request: DecodeRequest
    n_tries: int = 0
    n_waits: int = 0
    n_answers: int = 0
    built: Built | None = None
    started_at: datetime | None = None
    reply: HttpReply | None = None


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A case whose failure may be its own or the endpoint's: it is tried again after all others."""

    request: DecodeRequest


class Decoding:
    """One `decode` under way: its results, None where it was aborted, and whether it is over.

    has_failed: a call has ended all of them, and no other one is begun. asked_again: the cases whose first failure was
    doubtful.
    """

    def __init__(self) -> None:
        self.results: SimpleQueue[CallOutcome | Doubtful | BaseException | None] = SimpleQueue()
        self.asked_again: set[int] = set()
        self.over = threading.Event()
        # A plain flag beside the Event: a signal handler may set it while this very thread holds the Event's lock.
        self.is_over = False
        self.has_failed = False

    def end(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        self.over.set()
        self.results.put(None)

    def check(self) -> None:
        """Raise CalledOff if the caller has stopped."""
        if self.is_over:
            raise CalledOff

    def wait(self) -> CallOutcome | Doubtful | BaseException | None:
        """Return the next result.

        Python handles signals between two instructions: a Ctrl-C that comes just before a wait is seen when the wait
        ends, so each wait ends soon.
        """
        while True:
            with suppress(Empty):
                return self.results.get(timeout=SIGNAL_SECONDS)

    def rest(self) -> Iterator[CallOutcome]:
        """Yield the answers that came in addition to a failure."""
        while True:
            try:
                outcome = self.results.get_nowait()
            except Empty:
                return
            if isinstance(outcome, Answered | Failed):
                yield outcome
