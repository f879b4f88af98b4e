"""The pairs of a comparison that differ, as many as there are."""

from collections.abc import Iterator
from dataclasses import dataclass

from evalboard.core.errors import Conflict
from runs.exports.snapshot import snapshot
from runs.models import Comparison
from runs.selectors.comparison import ComparisonReport
from runs.selectors.divergence_list import DivergenceFilter, DivergenceRow, divergence_rows, n_divergences

AT_ONCE = 500  # pairs in memory together


@dataclass(frozen=True, slots=True)
class PairTable:
    """What is asked for, counted before anything is read."""

    of: ComparisonReport
    wanted: DivergenceFilter
    n_rows: int

    def rows(self) -> Iterator[DivergenceRow]:
        """In the order of the case list, the gravest first, within one snapshot. Raises NotFound."""
        with snapshot():
            place: int | None = None
            while found := divergence_rows(self.of.id, self.wanted, after=place, limit=AT_ONCE):
                yield from found
                place = found[-1].place


def pair_table(report: ComparisonReport, wanted: DivergenceFilter) -> PairTable:
    """Raises Conflict while the comparison is at work: half of its pairs would pass for all."""
    progress = report.progress
    if progress.status == Comparison.Status.FAILED:
        raise Conflict(f"The comparison failed, so there is nothing to export: {progress.error}")
    if progress.status != Comparison.Status.FINISHED:
        done = f"{progress.n_done} of {progress.n_total} pairs are read"
        raise Conflict(f"The comparison is still at work: {done}. Export it when it has finished.")
    return PairTable(report, wanted, n_divergences(report.id, wanted))
