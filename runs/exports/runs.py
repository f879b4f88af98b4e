"""Choose what of a run can be exported (its ended repeats), and read it in one snapshot."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from evalboard.core.errors import Conflict
from evalboard.core.trace import unpack_selection
from runs.models import RepeatRecord, RunRecord
from runs.store import require_row, take_as_long_as_it_takes


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run, all its repeats, and those of them that have ended: only these will never change."""

    run: RunRecord
    repeats: tuple[RepeatRecord, ...]

    @property
    def ended(self) -> tuple[RepeatRecord, ...]:
        return tuple(repeat for repeat in self.repeats if repeat.finished_at is not None)

    @property
    def n_cases(self) -> int:
        return self.run.suite_version.n_cases

    def chosen(self, repeat: RepeatRecord) -> NDArray[np.bool_] | None:
        """Return bool[n_cases], the cases that a targeted repeat was to decode; None for one of all cases."""
        return None if repeat.cases is None else unpack_selection(bytes(repeat.cases), self.n_cases)


def ended_run(run_id: int) -> EndedRun:
    """Read a run. Raises NotFound, or Conflict where no repeat has ended."""
    related = ("suite_version__suite", "suite_version__scorer", "endpoint", "profile", "created_by")
    run = require_row(RunRecord.objects.select_related(*related).filter(pk=run_id), f"There is no run {run_id}.")
    ended = EndedRun(run, tuple(run.repeats.order_by("index")))
    if not ended.ended:
        raise Conflict(f"Run {run_id} has no repeat that has ended; export it when one has.")
    return ended


@contextmanager
def snapshot() -> Iterator[None]:
    """Read in one snapshot: everything is as it was at the first statement, and nothing can be written.

    It must be the outermost transaction. It has no lock that a writer waits for, and PostgreSQL ends it after a lease's
    length without a query: a client that stops reading does not prevent clean-up of old rows.
    """
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        take_as_long_as_it_takes()
        yield
