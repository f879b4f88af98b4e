"""Under which load the repeats of a gate were decoded: an engine's batches, or our own calls to a server of others.

What others asked of their server meanwhile nobody here knows, and nothing of it is claimed.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.db.models.fields.json import KT

from evalboard.core.stats import BATCHES, CALLS, SizeCounts, count_in_flight
from runs.models import CaseColumns, Gate, Response, Run
from runs.store import stored_columns


@dataclass(frozen=True, slots=True)
class Loads:
    """The load of each repeat, in the order of its ids. counted: core.stats.BATCHES or CALLS.

    Both sides are empty where one is counted in batches and the other in calls.
    """

    baseline: Sequence[SizeCounts]
    candidate: Sequence[SizeCounts]
    counted: str


def read_loads(gate: Gate, baseline_ids: Sequence[int], candidate_ids: Sequence[int]) -> Loads:
    """Return the loads of these repeats; a repeat of which nothing is known has an empty one, as those of logs have."""
    runs = (gate.baseline_run, gate.candidate_run)
    are_called = {run.endpoint.is_remote and run.source_id is None for run in runs}
    if len(are_called) > 1:
        return Loads((), (), BATCHES)
    if are_called == {True}:
        sides = [_read_calls(run, ids) for run, ids in zip(runs, (baseline_ids, candidate_ids), strict=True)]
        return Loads(sides[0], sides[1], CALLS)
    sizes = stored_columns.batch_sizes([*baseline_ids, *candidate_ids])
    return Loads([sizes[each] for each in baseline_ids], [sizes[each] for each in candidate_ids], BATCHES)


def _read_calls(run: Run, repeat_ids: Sequence[int]) -> list[SizeCounts]:
    """Return the calls in flight of each repeat, counted and stored where nobody has counted them."""
    rows = {row.repeat_id: row for row in CaseColumns.objects.filter(repeat__in=repeat_ids).only("calls_in_flight")}
    uncounted = [row for row in rows.values() if row.calls_in_flight is None]
    counts = _count_calls(run) if uncounted else {}
    for row in uncounted:
        row.calls_in_flight = counts.get(row.repeat_id, {})
    CaseColumns.objects.bulk_update(uncounted, ["calls_in_flight"])
    return [{int(size): n for size, n in (rows[each].calls_in_flight or {}).items()} for each in repeat_ids]


def _count_calls(run: Run) -> Mapping[int, Counter[int]]:
    """Return by repeat how many answers had how many of our calls in flight, those of all runs on its endpoint."""
    beside = Q(repeat__run__endpoint=run.endpoint_id, repeat__run__source=None, call__isnull=False)
    if run.finished_at is not None:
        beside &= Q(repeat__run__started_at__lte=run.finished_at)
    beside &= Q(repeat__run__finished_at=None) | Q(repeat__run__finished_at__gte=run.started_at)
    calls = Response.objects.filter(beside).annotate(started_at=KT("call__started_at"), ended_at=KT("call__ended_at"))
    rows = list(calls.values_list("repeat", "repeat__run", "error_code", "started_at", "ended_at"))
    began, ended = ([datetime.fromisoformat(str(row[at])).timestamp() for row in rows] for at in (3, 4))
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for (repeat, of, error, *_), n in zip(rows, count_in_flight(began, ended).tolist(), strict=True):
        if of == run.pk and not error:
            counts[repeat][n] += 1
    return counts
