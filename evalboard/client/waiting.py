"""Ask a server that may be restarting, follow what it works on to its end, and show how that gets on.

A bar on a terminal, lines in CI and in files; the same for a file that comes or goes.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self, TypeVar

from evalboard.client.errors import Unreachable
from evalboard.client.progress import WaitProgress, render_size, render_time_left

# Between two looks: a quick end is seen within a second, and what takes an hour is asked after less and less.
LOOK_SECONDS, MAX_LOOK_SECONDS = 0.5, 5.0
SHARE_WAITED = 1 / 20  # of the time waited so far
# A server that restarts is back within this; what was asked of it goes on without it.
GIVE_UP_SECONDS = 300.0
MAX_BACKOFF_SECONDS = 15.0
LINE_SECONDS = 30.0  # a line for each look would bury a CI log

Result = TypeVar("Result")


class Transfer(Protocol):
    """Called with the number of bytes transferred so far."""

    def tell(self, n_bytes: int) -> None: ...


class Follower(Protocol):
    """Called with the progress of something waited for, but not with its result."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...

    def tell(self, progress: WaitProgress) -> None: ...

    def say(self, words: str) -> None: ...


def ask_until_answered(ask: Callable[[], Result], follower: Follower, *, advice: str, give_up_after: float) -> Result:
    """Return what `ask` gives, asking again for a bounded time where the server does not answer.

    Raises Unreachable, with the advice, once that time is over. Other failures pass at once.
    """
    first_asked_at, n_silent = time.monotonic(), 0
    while True:
        try:
            return ask()
        except Unreachable as problem:
            silent_seconds = time.monotonic() - first_asked_at
            if silent_seconds >= give_up_after:
                raise Unreachable(f"{problem} No answer for {silent_seconds:.0f} s. {advice}") from problem
            if n_silent == 0:
                follower.say(f"{problem} Asking again for up to {give_up_after:g} s.")
            n_silent += 1
            time.sleep(min(2.0 ** (n_silent - 1), MAX_BACKOFF_SECONDS, max(give_up_after - silent_seconds, 0.1)))


def follow(
    ask: Callable[[], Result],
    read_progress: Callable[[Result], WaitProgress],
    follower: Follower,
    *,
    come_back: str,
    give_up_after: float,
) -> Result:
    """Poll `ask` until it has ended, and return its result. come_back: the command to name on giving up."""
    advice = f"The job continues without this command. Come back with: {come_back}"
    began_at = time.monotonic()
    while True:
        answer = ask_until_answered(ask, follower, advice=advice, give_up_after=give_up_after)
        progress = read_progress(answer)
        if progress.is_terminal:
            return answer
        follower.tell(progress)
        time.sleep(choose_pause(time.monotonic() - began_at, progress.eta_seconds))


def choose_pause(waited: float, eta: float | None) -> float:
    """Return the seconds until the next poll, by the seconds waited and those left (None: unknown)."""
    longest = MAX_LOOK_SECONDS if eta is None else min(eta / 2, MAX_LOOK_SECONDS)
    return max(min(SHARE_WAITED * waited, longest), LOOK_SECONDS)


def make_follower(environment: Mapping[str, str] = os.environ) -> Follower:
    """Make a bar on a terminal, else lines. Both leave stdout to the result."""
    if not is_terminal(environment):
        return ProgressLines()
    # Here, and rich with it: in CI and in files nothing is drawn.
    from evalboard.client.bars import ProgressBar

    return ProgressBar()


@contextmanager
def follow_transfer(name: str) -> Iterator[Transfer]:
    """Show the progress of a transfer. name: what the file contains, "run 12"."""
    if not is_terminal():
        yield SizeLines(name)
        return
    from evalboard.client.bars import SizeBar

    with SizeBar(name) as bar:
        yield bar


def is_terminal(environment: Mapping[str, str] = os.environ) -> bool:
    """Say whether stderr is a terminal, and CI is not set."""
    in_ci = environment.get("CI", "").casefold() in ("1", "true", "yes")
    return sys.stderr.isatty() and not in_ci


class ProgressLines:
    """A line when the status or a pause changes, and at most every half minute while responses come in."""

    def __init__(self) -> None:
        self._last: tuple[tuple[str, str], int, str] = (("", ""), -1, "")
        self._last_at = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return

    def tell(self, progress: WaitProgress) -> None:
        current = ((progress.status, progress.pause), progress.n_done, progress.note)
        is_due = time.monotonic() - self._last_at >= LINE_SECONDS
        if current[0] == self._last[0] and not (is_due and current != self._last):
            return
        self._last, self._last_at = current, time.monotonic()
        left = render_time_left(progress)
        count = f"{progress.n_done} of {progress.n_total} {progress.unit}"
        text = f"{progress.name}: {progress.status}, {count}" + (f", {left}" if left else "")
        why = progress.pause or progress.note
        self.say(f"{text}. {why}" if why else text)

    def say(self, words: str) -> None:
        sys.stderr.write(words + "\n")
        sys.stderr.flush()


class SizeLines:
    """A line at most every half minute while a file comes or goes."""

    def __init__(self, name: str) -> None:
        self._name, self._last_at = name, time.monotonic()

    def tell(self, n_bytes: int) -> None:
        if time.monotonic() - self._last_at >= LINE_SECONDS:
            self._last_at = time.monotonic()
            sys.stderr.write(f"{self._name}: {render_size(n_bytes)} so far\n")
            sys.stderr.flush()
