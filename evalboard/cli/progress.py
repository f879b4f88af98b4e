"""How a run gets on: a bar on a terminal, plain lines in CI and in files."""

import os
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from evalboard.cli.client import RunAnswer

LINE_SECONDS = 30.0  # a line for each look would bury a CI log


class Follower(Protocol):
    """What is told of a run while it is waited for; told nothing of its end."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...

    def tell(self, run: RunAnswer) -> None: ...

    def say(self, words: str) -> None: ...


def follower(environment: Mapping[str, str] = os.environ) -> Follower:
    """A bar where stderr is a terminal and CI is not set, else lines. Both leave stdout to the result."""
    in_ci = environment.get("CI", "").casefold() in ("1", "true", "yes")
    return Bar() if sys.stderr.isatty() and not in_ci else Lines()


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

    def tell(self, run: RunAnswer) -> None:
        self._progress.update(
            self._task,
            description=f"run {run.id} {run.status}",
            completed=run.n_done,
            total=run.n_total,
            left=time_left(run),
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

    def tell(self, run: RunAnswer) -> None:
        now = (run.status, run.n_done)
        is_due = time.monotonic() - self._told_at >= LINE_SECONDS
        if now[0] == self._told[0] and not (is_due and now != self._told):
            return
        self._told, self._told_at = now, time.monotonic()
        left = time_left(run)
        self.say(f"run {run.id}: {run.status}, {run.n_done} of {run.n_total} responses" + (f", {left}" if left else ""))

    def say(self, words: str) -> None:
        sys.stderr.write(words + "\n")
        sys.stderr.flush()


def time_left(run: RunAnswer) -> str:
    if run.eta_seconds is None:
        return ""
    if run.eta_seconds < 90:
        return f"about {run.eta_seconds:.0f} s left"
    return f"about {run.eta_seconds / 60:.0f} min left"
