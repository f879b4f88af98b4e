"""Asking a server that may be restarting, and following what it works on to its end."""

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from evalboard.cli.errors import CommandError, Unreachable
from evalboard.cli.progress import Follower, Waited

LOOK_SECONDS = 2.0
# A server that restarts is back within this; what was asked of it goes on without it.
GIVE_UP_SECONDS = 300.0
BACKOFF_SECONDS_MAX = 15.0


class Ending(Waited, Protocol):
    """What comes to an end."""

    @property
    def is_terminal(self) -> bool: ...


Given = TypeVar("Given")
Followed = TypeVar("Followed", bound=Ending)


def answered(ask: Callable[[], Given], told: Follower, *, advice: str, give_up_after: float) -> Given:
    """What `ask` gives. A server that does not answer is asked again, for a bounded time.

    Raises CommandError, with the advice, once that time is over. Other failures pass at once.
    """
    asked_at, n_silent = time.monotonic(), 0
    while True:
        try:
            return ask()
        except Unreachable as problem:
            silent_seconds = time.monotonic() - asked_at
            if silent_seconds >= give_up_after:
                raise CommandError(f"{problem} No answer for {silent_seconds:.0f} s. {advice}") from problem
            if n_silent == 0:
                told.say(f"{problem} Asking again for up to {give_up_after:.0f} s.")
            n_silent += 1
            time.sleep(min(2.0 ** (n_silent - 1), BACKOFF_SECONDS_MAX, max(give_up_after - silent_seconds, 0.1)))


def follow(ask: Callable[[], Followed], told: Follower, *, come_back: str, give_up_after: float) -> Followed:
    """What `ask` answers once it has ended; `come_back` is the command that goes on where this one gives up."""
    advice = f"What was asked for does not need this command; come back with: {come_back}"
    while True:
        found = answered(ask, told, advice=advice, give_up_after=give_up_after)
        if found.is_terminal:
            return found
        told.tell(found)
        time.sleep(LOOK_SECONDS)
