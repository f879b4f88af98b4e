"""The pairs of a comparison that differ, as many as there are."""

from collections.abc import Iterator
from dataclasses import dataclass

from evalboard.contract.compare import ComparedCase, Comparison
from evalboard.core.errors import Conflict
from runs.compare import DivergenceFilter, divergence_rows, n_divergences
from runs.exports.runs import snapshot
from runs.models import ComparisonRecord

AT_ONCE = 500  # pairs in memory together


@dataclass(frozen=True, slots=True)
class PairTable:
    """A pair export, counted before anything is read."""

    of: Comparison
    wanted: DivergenceFilter
    n_rows: int

    def rows(self) -> Iterator[ComparedCase]:
        """Yield rows in the order of the case list, the gravest first, within one snapshot. Raises NotFound."""
        with snapshot():
            place: int | None = None
            while rows := divergence_rows(self.of.id, self.wanted, after=place, limit=AT_ONCE):
                yield from rows
                place = rows[-1].place


def pair_table(report: Comparison, wanted: DivergenceFilter) -> PairTable:
    """Choose pairs. Raises Conflict while comparing, since a part would be taken for the whole."""
    progress = report.progress
    if progress.status == ComparisonRecord.Status.FAILED:
        raise Conflict(f"The comparison failed, so there is nothing to export: {progress.error}")
    if progress.status != ComparisonRecord.Status.FINISHED:
        done = f"{progress.n_done} of {progress.n_total} pairs are read"
        raise Conflict(f"The comparison is still at work: {done}. Export it when it has finished.")
    return PairTable(report, wanted, n_divergences(report.id, wanted))
