"""Schedules: runs and probes that are started at set times, and what came of each time."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, Count, Id, Instant, Labels, Number, PageAddress, says
from evalboard.contract.probe import KINDS
from evalboard.contract.run import PRIORITIES


class ScheduledRun(Contract):
    """The run that is started; a name that it lacks has the default of `POST /runs/`."""

    suite: str
    suite_version: Annotated[Number | None, says(description="null: the newest at that time")]
    endpoint: str
    profile: str
    repeats: Number | None
    seed: int | None
    labels: Labels | None
    priority: Annotated[str | None, says(enum=PRIORITIES)]


class ScheduledProbe(Contract):
    """The probe that is started; `profile` null: the one that fits the kind."""

    endpoint: str
    kind: Annotated[str, says(enum=KINDS)]
    profile: str | None
    parameters: dict[str, Any] | None


class ScheduleStart(Contract):
    """The result of one due time: a run, a probe, or a problem.

    `missed_since`: it also replaces earlier due times.
    """

    due_at: Instant
    missed_since: Instant | None
    started_at: Instant
    run: Id | None
    probe: Id | None
    problem: str
    status: Annotated[str | None, says(description="address of the run or the probe; null if there is none")]
    state: Annotated[str | None, says(description="the probe's state; null for a run, and until it has finished")]


class Schedule(Contract):
    """A run or a probe started at set times, on behalf of the person who made it. The other one is null."""

    id: Id
    slug: str
    cron: Annotated[str, says(description="minute, hour, day of the month, month, day of the week")]
    time_zone: Annotated[str, says(description="IANA name of the time zone")]
    run: ScheduledRun | None
    probe: ScheduledProbe | None
    created_by: str
    created_at: Instant
    next_at: Annotated[Instant | None, says(description="null while paused")]
    n_failures: Annotated[Count, says(description="starts in a row that were refused")]
    is_failing: Annotated[bool, says(description="three or more starts in a row were refused")]
    starts: Annotated[tuple[ScheduleStart, ...], says(description="the last ones, newest first")]
    url: PageAddress
