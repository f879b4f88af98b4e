"""A run under way, in words: who works on it now, which shards are tried again, and what happened so far."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from runs.selectors.run import EventLine, RepeatLine, ShardCell

LEAST_GROUPED = 3
PLACE = re.compile(r"(?:Repeat \d+, cases \d+–\d+(?:, attempt \d+(?: by \S+)?)?|Case .+?): ")


@dataclass(frozen=True, slots=True)
class ShardLine:
    """A shard with the repeat that it belongs to."""

    repeat: int
    cell: ShardCell

    @property
    def place(self) -> str:
        return f"repeat {self.repeat}, cases {self.cell.first}–{self.cell.last}"

    @property
    def n_cases(self) -> int:
        return self.cell.last - self.cell.first + 1


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One line of a run's history; `events` are those it stands for, where they are three or more that say the same."""

    at: datetime
    until: datetime
    level: str
    text: str
    events: tuple[EventLine, ...] = ()


def at_work(repeats: Sequence[RepeatLine]) -> tuple[ShardLine, ...]:
    """The shards that are being decoded."""
    return tuple(line for line in _lines(repeats) if line.cell.status == "running")


def tried_again(repeats: Sequence[RepeatLine]) -> tuple[ShardLine, ...]:
    """The shards in the queue that somebody has tried before in vain."""
    return tuple(line for line in _lines(repeats) if line.cell.status == "queued" and line.cell.n_failures)


def n_workers(lines: Sequence[ShardLine]) -> int:
    """Those that are heard of."""
    return len({line.cell.worker for line in lines if not line.cell.is_silent})


def story(events: Sequence[EventLine]) -> tuple[StoryLine, ...]:
    """The history with equal lines in a row told once; lines are equal that differ only in their shard or case."""
    told: list[StoryLine] = []
    for _, group in groupby(events, key=lambda event: (event.level, event.code, _what(event.text))):
        alike = tuple(group)
        if len(alike) >= LEAST_GROUPED:
            what = _what(alike[0].text)
            told.append(StoryLine(alike[0].at, alike[-1].at, alike[0].level, f"{len(alike)} × {what}", alike))
        else:
            told += [StoryLine(event.at, event.at, event.level, event.text) for event in alike]
    return tuple(told)


def _lines(repeats: Sequence[RepeatLine]) -> tuple[ShardLine, ...]:
    return tuple(ShardLine(repeat.index, cell) for repeat in repeats for cell in repeat.shards)


def _what(text: str) -> str:
    return PLACE.sub("", text, count=1)
