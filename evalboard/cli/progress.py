"""How a run or a replay gets on: a bar on a terminal, plain lines in CI and in files."""

import os
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

LINE_SECONDS = 30.0  # a line for each look would bury a CI log


class Waited(Protocol):
    """What is waited for: `name` is "run 3", `unit` what it consists of, "responses"."""

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def n_done(self) -> int: ...
    @property
    def n_total(self) -> int: ...
    @property
    def eta_seconds(self) -> float | None: ...


class Follower(Protocol):
    """What is told of a run while it is waited for; told nothing of its end."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...

    def tell(self, waited: Waited) -> None: ...

    def say(self, words: str) -> None: ...


def follower(environment: Mapping[str, str] = os.environ) -> Follower:
    """A bar on a terminal, else lines. Both leave stdout to the result."""
    return Bar() if is_terminal(environment) else Lines()


def is_terminal(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether stderr is one, and CI is not set."""
    in_ci = environment.get("CI", "").casefold() in ("1", "true", "yes")
    return sys.stderr.isatty() and not in_ci


class Bar:
    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("waiting", total=None, left="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()

    def tell(self, waited: Waited) -> None:
        self._progress.update(
            self._task,
            description=f"{waited.name} {waited.status}",
            completed=waited.n_done,
            total=waited.n_total,
            left=time_left(waited),
        )

    def say(self, words: str) -> None:
        self._progress.console.print(words, markup=False, highlight=False)


class Lines:
    """A line when the status changes, and at most every half minute while responses come in."""

    def __init__(self) -> None:
        self._told: tuple[str, int] = ("", -1)
        self._told_at = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return

    def tell(self, waited: Waited) -> None:
        now = (waited.status, waited.n_done)
        is_due = time.monotonic() - self._told_at >= LINE_SECONDS
        if now[0] == self._told[0] and not (is_due and now != self._told):
            return
        self._told, self._told_at = now, time.monotonic()
        left = time_left(waited)
        counted = f"{waited.n_done} of {waited.n_total} {waited.unit}"
        self.say(f"{waited.name}: {waited.status}, {counted}" + (f", {left}" if left else ""))

    def say(self, words: str) -> None:
        sys.stderr.write(words + "\n")
        sys.stderr.flush()


def time_left(waited: Waited) -> str:
    if waited.eta_seconds is None:
        return ""
    if waited.eta_seconds < 90:
        return f"about {waited.eta_seconds:.0f} s left"
    return f"about {waited.eta_seconds / 60:.0f} min left"
