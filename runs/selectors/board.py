"""The board: what needs somebody."""

from dataclasses import dataclass
from datetime import timedelta

from django.db.models.functions import Now

from runs.models import Run
from runs.selectors.run import RunRow
from runs.selectors.run_list import rows_of
from runs.selectors.suite import SuiteRow, suite_rows
from runs.selectors.worker import WorkerRow, worker_rows

# What nobody minded for two weeks does not need somebody; the list of runs still has it.
ATTENTION_FOR = timedelta(days=14)
RUNS_LOOKED_AT = 100
ATTENTION_SHOWN, IN_PROGRESS_SHOWN, RECENT_SHOWN = 20, 20, 10
OPEN = (Run.Status.QUEUED, Run.Status.RUNNING)


@dataclass(frozen=True, slots=True)
class Board:
    """Runs that need somebody (failed, incomplete, broken pins), those in progress, the newest finished ones."""

    attention: tuple[RunRow, ...]
    in_progress: tuple[RunRow, ...]
    recent: tuple[RunRow, ...]
    silent_workers: tuple[WorkerRow, ...]
    suites: tuple[SuiteRow, ...]


def board() -> Board:
    newest = Run.objects.filter(created_at__gt=Now() - ATTENTION_FOR).order_by("-id")[:RUNS_LOOKED_AT]
    rows = rows_of(newest)
    at_work = rows_of(Run.objects.filter(status__in=OPEN).order_by("-id")[:IN_PROGRESS_SHOWN])
    finished = Run.objects.filter(status=Run.Status.FINISHED).order_by("-finished_at", "-id")[:RECENT_SHOWN]
    return Board(
        attention=tuple(row for row in rows if _needs_somebody(row))[:ATTENTION_SHOWN],
        in_progress=at_work,
        recent=rows_of(finished),
        silent_workers=tuple(worker for worker in worker_rows() if worker.state == "silent"),
        suites=suite_rows(),
    )


def _needs_somebody(row: RunRow) -> bool:
    return row.status in (Run.Status.FAILED, Run.Status.INCOMPLETE) or row.pins_held is False
