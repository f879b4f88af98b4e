"""The board: everything that needs attention."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evalboard.contract.baseline import Baseline, RotationSeen
from evalboard.contract.parts import Pause
from evalboard.contract.probe import ProbeRow
from evalboard.contract.run import RunRow
from evalboard.contract.schedule import Schedule
from evalboard.contract.stack import Worker
from runs.baselines import current_baselines, rotation_rows
from runs.models import EndpointRecord, ReleaseRecord, RepeatRecord, RunRecord, SignOffRecord
from runs.probes import probes_to_mind
from runs.release import WaitingRelease, waiting_releases, with_outcome
from runs.run import ANY_PIN_BROKEN, NEWEST_FIRST, rows_of
from runs.schedules import schedule_rows
from runs.work import PoolRow, pool_rows, worker_rows

# Items older than two weeks need no attention; the list of runs still has them.
ATTENTION_FOR = timedelta(days=14)
NEWS_FOR = timedelta(days=7)
STANDING = ("approved", "rejected", "waived")  # outcomes of a release that is decided
RUNS_LOOKED_AT = 100
ATTENTION_SHOWN, IN_PROGRESS_SHOWN = 20, 20
RELEASES_SHOWN, ROTATIONS_SHOWN, SIGNED_SHOWN, RUNS_NAMED = 40, 10, 5, 3
OPEN = (RunRecord.Status.QUEUED, RunRecord.Status.RUNNING)


@dataclass(frozen=True, slots=True)
class SignedRelease:
    """A signed decision on a release. word: the verdict then."""

    release: int
    word: str
    decision: str
    person: str
    at: datetime


@dataclass(frozen=True, slots=True)
class PausedEndpoint:
    """An external server that is not called for a while. n_runs: how many wait for it."""

    endpoint: str
    pause: Pause
    n_runs: int


@dataclass(frozen=True, slots=True)
class Board:
    """What needs attention, newest first.

    attention: runs that failed, are incomplete, have broken pins, or repeats that differ where they must not; failures:
    why, "" where none has failed. in_progress: other runs. `deserted_pools` have work but no worker that takes it; some
    of their workers may be silent or paused. `waiting` have no valid sign-off; `expired_baselines` are current ones
    that a rotation ended; `rotations`, `signed` and the numbers of ended runs are those of a week, `last_signed` is the
    newest of all; `probes` failed, or need action; `paused` endpoints are not called for a while.
    """

    attention: tuple[RunRow, ...]
    in_progress: tuple[RunRow, ...]
    silent_workers: tuple[Worker, ...]
    resting_workers: tuple[Worker, ...]
    deserted_pools: tuple[PoolRow, ...]
    n_finished: int
    n_incomplete: int
    newest_finished: tuple[int, ...] = ()
    waiting: tuple[WaitingRelease, ...] = ()
    signed: tuple[SignedRelease, ...] = ()
    last_signed: datetime | None = None
    expired_baselines: tuple[Baseline, ...] = ()
    rotations: tuple[RotationSeen, ...] = ()
    probes: tuple[ProbeRow, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    paused: tuple[PausedEndpoint, ...] = ()
    failures: Mapping[int, str] = field(default_factory=dict)

    @property
    def failing_schedules(self) -> tuple[Schedule, ...]:
        return tuple(row for row in self.schedules if row.is_failing)

    @property
    def next_schedule(self) -> Schedule | None:
        """Return the schedule that is due next. Schedules are sorted so, with paused ones last."""
        return next((row for row in self.schedules if row.next_at is not None), None)

    @property
    def last_started(self) -> Schedule | None:
        """The one whose last due time is the latest of all."""
        started = [row for row in self.schedules if row.starts]
        return max(started, key=lambda row: row.starts[0].due_at, default=None)


def board() -> Board:
    at_work = RunRecord.objects.filter(status__in=OPEN, is_judge=False).order_by("-id")[:IN_PROGRESS_SHOWN]
    failures, working = (dict(runs.values_list("pk", "failure")) for runs in (_need_somebody(), at_work))
    rows = {int(row.id): row for row in rows_of(RunRecord.objects.filter(pk__in=[*failures, *working]))}
    attention, in_progress = (tuple(rows[pk] for pk in of if pk in rows) for of in (failures, working))
    signed = _signed()
    workers = worker_rows()
    return Board(
        attention=attention,
        failures=failures,
        in_progress=in_progress,
        silent_workers=tuple(worker for worker in workers if worker.state == "silent"),
        resting_workers=tuple(worker for worker in workers if worker.state == "resting"),
        deserted_pools=tuple(pool for pool in pool_rows(workers) if pool.is_deserted),
        **_ended_this_week(),
        newest_finished=_newest_finished(),
        waiting=_waiting(),
        signed=tuple(each for each in signed if each.at > timezone.now() - NEWS_FOR),
        last_signed=signed[0].at if signed else None,
        expired_baselines=tuple(row for row in current_baselines() if row.is_expired),
        rotations=rotation_rows(since=timezone.now() - NEWS_FOR, limit=ROTATIONS_SHOWN),
        probes=probes_to_mind(since=timezone.now() - ATTENTION_FOR),
        schedules=schedule_rows(),
        paused=_paused(),
    )


def _waiting() -> tuple[WaitingRelease, ...]:
    newest = with_outcome(ReleaseRecord.objects.filter(created_at__gt=Now() - ATTENTION_FOR))
    return waiting_releases(newest.exclude(outcome__in=STANDING).order_by("-id")[:RELEASES_SHOWN])


def _paused() -> tuple[PausedEndpoint, ...]:
    open_runs = Count("runs", filter=Q(runs__status__in=OPEN))
    rows = EndpointRecord.objects.filter(rests_until__gt=Now()).annotate(n_runs=open_runs).order_by("slug")
    return tuple(
        PausedEndpoint(slug, Pause(n_failures=n_failures, reason=reason, until=until), n_runs)
        for slug, n_failures, reason, until, n_runs in rows.values_list(
            "slug", "n_failures", "rest_reason", "rests_until", "n_runs"
        )
        if until is not None
    )


def _signed() -> tuple[SignedRelease, ...]:
    """Return the newest decisions of all, newest first."""
    rows = SignOffRecord.objects.order_by("-id").values_list(
        "release", "verdict__word", "decision", "person_name", "created_at"
    )
    return tuple(SignedRelease(*row) for row in rows[:SIGNED_SHOWN])


def _newest_finished() -> tuple[int, ...]:
    lately = RunRecord.objects.filter(finished_at__gt=Now() - NEWS_FOR, is_judge=False)
    finished = lately.filter(status=RunRecord.Status.FINISHED)
    return tuple(finished.order_by("-finished_at", "-id").values_list("pk", flat=True)[:RUNS_NAMED])


def _ended_this_week() -> dict[str, int]:
    ended = RunRecord.objects.filter(finished_at__gt=Now() - NEWS_FOR, is_judge=False)
    n_finished, n_incomplete = Q(status=RunRecord.Status.FINISHED), Q(status=RunRecord.Status.INCOMPLETE)
    return ended.aggregate(n_finished=Count("pk", filter=n_finished), n_incomplete=Count("pk", filter=n_incomplete))


def _need_somebody() -> "QuerySet[RunRecord]":
    """Return recent runs that failed, lack responses, broke a pin, or have repeats that must not differ."""
    lately = RunRecord.objects.filter(ran_at__gt=Now() - ATTENTION_FOR, is_judge=False)
    newest = lately.order_by(*NEWEST_FIRST)[:RUNS_LOOKED_AT]
    processes = RepeatRecord.engine_processes.through.objects.filter(repeat__run=OuterRef("pk"))
    is_broken = Q(is_reported=False) & Exists(processes.filter(ANY_PIN_BROKEN))
    is_torn = Q(strays__isnull=False) & ~Q(strays=[]) | Q(unsteady__isnull=False) & ~Q(unsteady=[])
    among_newest = RunRecord.objects.filter(pk__in=newest.values("pk"))
    wanting = among_newest.filter(
        Q(status__in=(RunRecord.Status.FAILED, RunRecord.Status.INCOMPLETE)) | is_broken | is_torn
    )
    return wanting.order_by(*NEWEST_FIRST)[:ATTENTION_SHOWN]
