"""Schedules: runs and probes that are started at set times, and what came of each time."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, Count, Id, Instant, Labels, Number, PageAddress, says
from evalboard.contract.probe import KINDS
from evalboard.contract.run import PRIORITIES


class ScheduledRun(Contract):
    """The run that is started; a name that it lacks has the default of `POST /runs/`."""

    suite: str
    suite_version: Annotated[Number | None, says(description="null: the newest of that time")]
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
    """What came of one due time: a run, a probe, or a problem. `missed_since`: it stands for earlier due times too."""

    due_at: Instant
    missed_since: Instant | None
    started_at: Instant
    run: Id | None
    probe: Id | None
    problem: str
    status: Annotated[str | None, says(description="where the run or the probe is; null where there is none")]
    state: Annotated[str | None, says(description="what the probe found; null of a run, and until it has")]


class Schedule(Contract):
    """What is started at set times, as the person who made it. `run` or `probe` says what; the other one is null."""

    id: Id
    slug: str
    cron: Annotated[str, says(description="minute, hour, day of the month, month, day of the week")]
    time_zone: Annotated[str, says(description="a name of the IANA list, whose clock counts")]
    run: ScheduledRun | None
    probe: ScheduledProbe | None
    created_by: str
    created_at: Instant
    next_at: Annotated[Instant | None, says(description="null while it pauses")]
    n_failures: Annotated[Count, says(description="starts in a row that were refused")]
    is_failing: Annotated[bool, says(description="three or more starts in a row were refused")]
    starts: Annotated[tuple[ScheduleStart, ...], says(description="the last ones, newest first")]
    url: PageAddress
