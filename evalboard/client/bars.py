"""Draw what is waited for on a terminal. The only file that knows rich."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TransferSpeedColumn
from rich.progress import Progress as Display

from evalboard.client.progress import WaitProgress, render_size, render_time_left


class ProgressBar:
    """A progress bar: parts done, and the remaining time."""

    def __init__(self) -> None:
        self._display = Display(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._display.add_task("waiting", total=None, left="")

    def __enter__(self) -> Self:
        self._display.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._display.stop()

    def tell(self, progress: WaitProgress) -> None:
        self._display.update(
            self._task,
            description=f"{progress.name} {progress.status}",
            completed=progress.n_done,
            total=progress.n_total,
            left=progress.pause or render_time_left(progress) or progress.note,
        )

    def say(self, words: str) -> None:
        self._display.console.print(words, markup=False, highlight=False)


class SizeBar:
    """A transfer bar: bytes so far, and the speed."""

    def __init__(self, name: str) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TransferSpeedColumn())
        self._display = Display(*columns, console=Console(stderr=True), transient=True)
        self._name, self._task = name, self._display.add_task(name, total=None)

    def __enter__(self) -> Self:
        self._display.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._display.stop()

    def tell(self, n_bytes: int) -> None:
        self._display.update(self._task, description=f"{self._name}: {render_size(n_bytes)}", completed=n_bytes)
