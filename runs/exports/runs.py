"""What of a run can be exported: the repeats that have ended, as comparisons take them."""

from dataclasses import dataclass

from evalboard.core.errors import Conflict, NotFound
from runs.models import Repeat, Run


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run, all its repeats, and those of them that have ended: only these will never change."""

    run: Run
    repeats: tuple[Repeat, ...]

    @property
    def ended(self) -> tuple[Repeat, ...]:
        return tuple(repeat for repeat in self.repeats if repeat.finished_at is not None)

    @property
    def n_cases(self) -> int:
        return self.run.suite_version.n_cases


def ended_run(run_id: int) -> EndedRun:
    """Raises NotFound, or Conflict where no repeat has ended."""
    related = ("suite_version__suite", "suite_version__scorer", "endpoint", "profile", "created_by")
    run = Run.objects.select_related(*related).filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    found = EndedRun(run, tuple(run.repeats.order_by("index")))
    if not found.ended:
        raise Conflict(f"Run {run_id} has no repeat that has ended; export it when one has.")
    return found
