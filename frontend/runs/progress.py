"""A running run in words: who works on it, which shards are retried, its history and where it stopped."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from evalboard.contract.run import EventOfRun, Repeat, Run, ShardOfRun, TargetedRepeat
from evalboard.wording.numbers import listed
from runs.acts import ActOffer

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


# The acts that the page names where they cannot be done now, with the reason.
LABELS = {
    "again": "Run again",
    "compare": "Compare with…",
    "judge": "Judge as a release",
    "add_repeats": "Add repeats",
    "rescore": "Score again",
    "force": "Score on another stack…",
    "baseline": "Set as baseline",
    "delete": "Delete run…",
}


@dataclass(frozen=True, slots=True)
class WayStop:
    """A place on the way of a run. state: "done", "failed", "waiting" or "open"."""

    label: str
    state: str
    at: datetime | None = None


def unavailable(acts: Mapping[str, ActOffer]) -> tuple[tuple[str, ActOffer], ...]:
    """Return the acts that a run is shown with and cannot have now."""
    return tuple((label, acts[act]) for act, label in LABELS.items() if not acts[act] and acts[act].is_shown)


def list_stops(run: Run) -> tuple[WayStop, ...]:
    """Return the way of a run: reached, where it stopped, and what was not reached."""
    stops = []
    is_open = False
    for label, is_reached, at in _way(run):
        state = "done" if is_reached else "open"
        if not (is_reached or is_open):
            state, is_open = ("failed" if run.is_terminal else "waiting"), True
        stops.append(WayStop(label, state, at))
    return tuple(stops)


def _way(run: Run) -> Iterator[tuple[str, bool, datetime | None]]:
    n, code = run.progress.n_done, run.trouble.code if run.trouble else ""
    workers = sorted({shard.worker for line in run.every_repeat for shard in line.shards if shard.worker})
    is_claimed = run.started_at is not None
    yield "queued", True, run.created_at
    yield f"claimed by {listed(workers)}" if is_claimed and workers else "claimed", is_claimed, run.started_at
    if run.is_reported:
        is_called = n > 0 or code in ("endpoint_refused", "endpoint_rests", "no_answer")
        yield "endpoint called" if is_called else "call the endpoint", is_called, None
    else:
        is_started = n > 0 or bool(run.processes)
        yield "engine started" if is_started else "start an engine", is_started, None
    yield "first answer", n > 0, None
    yield f"{run.progress.n_total:,} answers", n == run.progress.n_total, run.finished_at if n else None
