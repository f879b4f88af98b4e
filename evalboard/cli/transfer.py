"""How a file gets on that comes or goes: one line on a terminal, a line now and then in CI and in files."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Protocol

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TransferSpeedColumn

from evalboard.cli.progress import LINE_SECONDS, is_terminal


class Transfer(Protocol):
    """What is told how many bytes have come, or gone, so far."""

    def tell(self, n_bytes: int) -> None: ...


@contextmanager
def transfer(name: str) -> Iterator[Transfer]:
    """`name` is what comes or goes: "run 12"."""
    if not is_terminal():
        yield _Lines(name)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Line(name, progress)


class _Line:
    def __init__(self, name: str, progress: Progress) -> None:
        self._name, self._progress = name, progress
        self._task = progress.add_task(name, total=None)

    def tell(self, n_bytes: int) -> None:
        self._progress.update(self._task, description=f"{self._name}: {size(n_bytes)}", completed=n_bytes)


class _Lines:
    def __init__(self, name: str) -> None:
        self._name, self._told_at = name, time.monotonic()

    def tell(self, n_bytes: int) -> None:
        if time.monotonic() - self._told_at >= LINE_SECONDS:
            self._told_at = time.monotonic()
            sys.stderr.write(f"{self._name}: {size(n_bytes)} so far\n")
            sys.stderr.flush()


class Outgoing:
    """A file that is sent, as httpx reads it: `tell` hears of every part how long it is."""

    def __init__(self, file: IO[bytes], tell: Callable[[int], None]) -> None:
        self._file, self._tell = file, tell

    def read(self, n_bytes: int = -1) -> bytes:
        part = self._file.read(n_bytes)
        self._tell(len(part))
        return part

    def fileno(self) -> int:
        """By which httpx learns the length before it sends."""
        return self._file.fileno()


def size(n_bytes: int) -> str:
    """As pages write it: "6.4 MB", of a million bytes each."""
    if n_bytes < 1_000_000:
        return f"{n_bytes / 1000:.1f} kB"
    return f"{n_bytes / 1_000_000:,.1f} MB"
