"""The board: what needs somebody."""

from dataclasses import dataclass
from datetime import timedelta
from itertools import chain

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evalboard.contract.baseline import Baseline, RotationSeen
from evalboard.contract.probe import ProbeRow
from evalboard.contract.release import ReleaseRow
from evalboard.contract.run import RunRow
from evalboard.contract.schedule import Schedule
from evalboard.contract.stack import Worker
from evalboard.contract.suite import SuiteRow
from runs.baselines import current_baselines, rotation_rows
from runs.models import Release, Repeat, Run
from runs.probes import probes_to_mind
from runs.release import rows_of as release_rows_of
from runs.release import with_outcome
from runs.run import ANY_PIN_BROKEN, NEWEST_FIRST, rows_of
from runs.schedules import schedule_rows
from runs.suites import newest_runs, suite_rows
from runs.work import PoolRow, pool_rows, worker_rows

# What nobody minded for two weeks does not need somebody; the list of runs still has it.
ATTENTION_FOR = timedelta(days=14)
ROTATIONS_FOR = timedelta(days=7)
STANDING = ("approved", "rejected", "waived")  # the outcomes of a release that wait for nobody
RUNS_LOOKED_AT = 100
ATTENTION_SHOWN, IN_PROGRESS_SHOWN, RECENT_SHOWN = 20, 20, 10
RELEASES_SHOWN, ROTATIONS_SHOWN = 20, 10
OPEN = (Run.Status.QUEUED, Run.Status.RUNNING)


@dataclass(frozen=True, slots=True)
class Board:
    """Runs that need somebody (failed, incomplete, broken pins, repeats that one computation does not give), those in
    progress, the newest finished ones.

    `deserted_pools` have work and nobody to do it; of their workers some may be among the silent or resting ones.
    `open_releases` have no sign-off that stands, newest first; `expired_baselines` are current ones that a rotation
    made expire; `rotations` are those of a week; `probes` failed or found what somebody must act on.
    """

    attention: tuple[RunRow, ...]
    in_progress: tuple[RunRow, ...]
    recent: tuple[RunRow, ...]
    silent_workers: tuple[Worker, ...]
    resting_workers: tuple[Worker, ...]
    deserted_pools: tuple[PoolRow, ...]
    suites: tuple[SuiteRow, ...]
    open_releases: tuple[ReleaseRow, ...] = ()
    expired_baselines: tuple[Baseline, ...] = ()
    rotations: tuple[RotationSeen, ...] = ()
    probes: tuple[ProbeRow, ...] = ()
    schedules: tuple[Schedule, ...] = ()

    @property
    def failing_schedules(self) -> tuple[Schedule, ...]:
        return tuple(row for row in self.schedules if row.is_failing)

    @property
    def next_schedule(self) -> Schedule | None:
        """The one that is due next; they stand in that order, and those that pause last."""
        return next((row for row in self.schedules if row.next_at is not None), None)

    @property
    def last_started(self) -> Schedule | None:
        """The one whose last due time is the latest of all."""
        started = [row for row in self.schedules if row.starts]
        return max(started, key=lambda row: row.starts[0].due_at, default=None)


def board() -> Board:
    at_work = Run.objects.filter(status__in=OPEN).order_by("-id")[:IN_PROGRESS_SHOWN]
    finished = Run.objects.filter(status=Run.Status.FINISHED).order_by("-finished_at", "-id")[:RECENT_SHOWN]
    lists = [list(runs.values_list("pk", flat=True)) for runs in (_need_somebody(), at_work, finished)]
    newest = newest_runs()
    rows = {int(row.id): row for row in rows_of(Run.objects.filter(pk__in={*newest, *chain(*lists)}))}
    attention, in_progress, recent = (tuple(rows[pk] for pk in of if pk in rows) for of in lists)
    workers = worker_rows()
    return Board(
        attention=attention,
        in_progress=in_progress,
        recent=recent,
        silent_workers=tuple(worker for worker in workers if worker.state == "silent"),
        resting_workers=tuple(worker for worker in workers if worker.state == "resting"),
        deserted_pools=tuple(pool for pool in pool_rows(workers) if pool.is_deserted),
        suites=suite_rows({pk: rows[pk] for pk in newest if pk in rows}),
        open_releases=_open_releases(),
        expired_baselines=tuple(row for row in current_baselines() if row.is_expired),
        rotations=rotation_rows(since=timezone.now() - ROTATIONS_FOR, limit=ROTATIONS_SHOWN),
        probes=probes_to_mind(since=timezone.now() - ATTENTION_FOR),
        schedules=schedule_rows(),
    )


def _open_releases() -> tuple[ReleaseRow, ...]:
    newest = with_outcome(Release.objects.filter(created_at__gt=Now() - ATTENTION_FOR))
    return release_rows_of(newest.exclude(outcome__in=STANDING).order_by("-id")[:RELEASES_SHOWN])


def _need_somebody() -> "QuerySet[Run]":
    """Of the newest runs those that failed, lack responses, broke a pin or have repeats that one computation does not
    give.
    """
    newest = Run.objects.filter(ran_at__gt=Now() - ATTENTION_FOR).order_by(*NEWEST_FIRST)[:RUNS_LOOKED_AT]
    processes = Repeat.engine_processes.through.objects.filter(repeat__run=OuterRef("pk"))
    is_broken = Q(is_reported=False) & Exists(processes.filter(ANY_PIN_BROKEN))
    is_torn = Q(strays__isnull=False) & ~Q(strays=[]) | Q(unsteady__isnull=False) & ~Q(unsteady=[])
    among_newest = Run.objects.filter(pk__in=newest.values("pk"))
    wanting = among_newest.filter(Q(status__in=(Run.Status.FAILED, Run.Status.INCOMPLETE)) | is_broken | is_torn)
    return wanting.order_by(*NEWEST_FIRST)[:ATTENTION_SHOWN]
