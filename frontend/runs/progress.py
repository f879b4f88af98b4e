"""A running run in words: who works on it, which shards are retried, and its history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from evalboard.contract.run import EventOfRun, Repeat, ShardOfRun, TargetedRepeat

MIN_GROUPED = 3


@dataclass(frozen=True, slots=True)
class ShardLine:
    """A shard with the repeat that it belongs to."""

    repeat: int
    cell: ShardOfRun

    @property
    def place(self) -> str:
        return f"repeat {self.repeat}, cases {self.cell.first}–{self.cell.last}"


@dataclass(frozen=True, slots=True)
class RunStoryLine:
    """A line of a run's history. events: those it represents, if three or more are equal."""

    at: datetime
    until: datetime
    level: str
    text: str
    events: tuple[EventOfRun, ...] = ()


def at_work(repeats: Sequence[Repeat | TargetedRepeat]) -> tuple[ShardLine, ...]:
    """Return the shards that are being decoded."""
    return tuple(line for line in _lines(repeats) if line.cell.status == "running")


def tried_again(repeats: Sequence[Repeat | TargetedRepeat]) -> tuple[ShardLine, ...]:
    """Return the queued shards that failed before."""
    return tuple(line for line in _lines(repeats) if line.cell.status == "queued" and line.cell.n_failures)


def n_workers(lines: Sequence[ShardLine]) -> int:
    """Count the workers that are heard of."""
    return len({line.cell.worker for line in lines if not line.cell.is_silent})


def story(events: Sequence[EventOfRun]) -> tuple[RunStoryLine, ...]:
    """Return the history with consecutive equal lines merged.

    Lines are equal that differ only in their shard or case.
    """
    lines: list[RunStoryLine] = []
    for _, group in groupby(events, key=lambda event: (event.level, event.code, event.what)):
        alike = tuple(group)
        if len(alike) >= MIN_GROUPED:
            first = alike[0]
            lines.append(RunStoryLine(first.at, alike[-1].at, first.level, f"{len(alike)} × {first.what}", alike))
        else:
            lines += [RunStoryLine(event.at, event.at, event.level, event.text) for event in alike]
    return tuple(lines)


def _lines(repeats: Sequence[Repeat | TargetedRepeat]) -> tuple[ShardLine, ...]:
    return tuple(ShardLine(repeat.index, cell) for repeat in repeats for cell in repeat.open_shards)
