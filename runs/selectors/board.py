"""The board: what needs somebody."""

from dataclasses import dataclass
from datetime import timedelta

from django.db.models.functions import Now
from django.utils import timezone

from runs.models import Release, Run
from runs.selectors.baseline import BaselineRow, RotationRow, current_baselines, rotation_rows
from runs.selectors.pool import PoolRow, pool_rows
from runs.selectors.probe import ProbeRow, probes_to_mind
from runs.selectors.release import ReleaseRow
from runs.selectors.release_list import rows_of as release_rows_of
from runs.selectors.release_list import with_outcome
from runs.selectors.run import RunRow
from runs.selectors.run_list import NEWEST_FIRST, rows_of
from runs.selectors.suite import SuiteRow, suite_rows
from runs.selectors.worker import WorkerRow, worker_rows

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
    """Runs that need somebody (failed, incomplete, broken pins), those in progress, the newest finished ones.

    `deserted_pools` have work and nobody to do it; of their workers some may be among the silent or resting ones.
    `open_releases` have no sign-off that stands, newest first; `expired_baselines` are current ones that a rotation
    made expire; `rotations` are those of a week; `probes` failed or found what somebody must act on.
    """

    attention: tuple[RunRow, ...]
    in_progress: tuple[RunRow, ...]
    recent: tuple[RunRow, ...]
    silent_workers: tuple[WorkerRow, ...]
    resting_workers: tuple[WorkerRow, ...]
    deserted_pools: tuple[PoolRow, ...]
    suites: tuple[SuiteRow, ...]
    open_releases: tuple[ReleaseRow, ...] = ()
    expired_baselines: tuple[BaselineRow, ...] = ()
    rotations: tuple[RotationRow, ...] = ()
    probes: tuple[ProbeRow, ...] = ()


def board() -> Board:
    newest = Run.objects.filter(ran_at__gt=Now() - ATTENTION_FOR).order_by(*NEWEST_FIRST)[:RUNS_LOOKED_AT]
    rows = rows_of(newest)
    at_work = rows_of(Run.objects.filter(status__in=OPEN).order_by("-id")[:IN_PROGRESS_SHOWN])
    finished = Run.objects.filter(status=Run.Status.FINISHED).order_by("-finished_at", "-id")[:RECENT_SHOWN]
    workers = worker_rows()
    return Board(
        attention=tuple(row for row in rows if _needs_somebody(row))[:ATTENTION_SHOWN],
        in_progress=at_work,
        recent=rows_of(finished),
        silent_workers=tuple(worker for worker in workers if worker.state == "silent"),
        resting_workers=tuple(worker for worker in workers if worker.state == "resting"),
        deserted_pools=tuple(pool for pool in pool_rows(workers) if pool.is_deserted),
        suites=suite_rows(),
        open_releases=_open_releases(),
        expired_baselines=tuple(row for row in current_baselines() if row.is_expired),
        rotations=rotation_rows(since=timezone.now() - ROTATIONS_FOR, limit=ROTATIONS_SHOWN),
        probes=probes_to_mind(since=timezone.now() - ATTENTION_FOR),
    )


def _open_releases() -> tuple[ReleaseRow, ...]:
    newest = with_outcome(Release.objects.filter(created_at__gt=Now() - ATTENTION_FOR))
    return release_rows_of(newest.exclude(outcome__in=STANDING).order_by("-id")[:RELEASES_SHOWN])


def _needs_somebody(row: RunRow) -> bool:
    return row.status in (Run.Status.FAILED, Run.Status.INCOMPLETE) or row.pins_held is False
