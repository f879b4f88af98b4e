"""Read the load under which a gate's repeats were decoded: batches, or our calls in flight.

Calls of other clients to an external server are unknown.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection

from evalboard.core.stats import BATCHES, CALLS, SizeCounts, count_in_flight
from runs.models import CaseColumns, GateRecord, RunRecord
from runs.store import stored_columns


@dataclass(frozen=True, slots=True)
class Loads:
    """The load of each repeat, in the order of its ids. counted: core.stats.BATCHES or CALLS.

    Both sides are empty where one is counted in batches and the other in calls.
    """

    baseline: Sequence[SizeCounts]
    candidate: Sequence[SizeCounts]
    counted: str


def read_loads(gate: GateRecord, baseline_ids: Sequence[int], candidate_ids: Sequence[int]) -> Loads:
    """Return the load of each repeat, empty if unknown, as for repeats of logs."""
    runs = (gate.baseline_run, gate.candidate_run)
    are_called = {run.endpoint.is_remote or (run.is_reported and not run.is_log) for run in runs}
    if len(are_called) > 1:
        return Loads((), (), BATCHES)
    if are_called == {True}:
        sides = [_read_calls(run, ids) for run, ids in zip(runs, (baseline_ids, candidate_ids), strict=True)]
        return Loads(sides[0], sides[1], CALLS)
    sizes = stored_columns.batch_sizes([*baseline_ids, *candidate_ids])
    return Loads([sizes[each] for each in baseline_ids], [sizes[each] for each in candidate_ids], BATCHES)


def _read_calls(run: RunRecord, repeat_ids: Sequence[int]) -> list[SizeCounts]:
    """Return the calls in flight of each repeat, counting and storing them if needed."""
    rows = {row.repeat_id: row for row in CaseColumns.objects.filter(repeat__in=repeat_ids).only("calls_in_flight")}
    uncounted = [row for row in rows.values() if row.calls_in_flight is None]
    counts = _count_calls(run) if uncounted else {}
    for row in uncounted:
        row.calls_in_flight = counts.get(row.repeat_id, {})
    CaseColumns.objects.bulk_update(uncounted, ["calls_in_flight"])
    return [{int(size): n for size, n in (rows[each].calls_in_flight or {}).items()} for each in repeat_ids]


# As bytes, a number a call in one order: half a million calls come as a few megabytes and not as as many rows.
_CALLS = """
SELECT string_agg(int8send(repeat.id), ''),
       string_agg(boolsend(run.id = %(run)s AND response.error_code = ''), ''),
       string_agg(float8send(extract(epoch FROM (response.call->>'started_at')::timestamptz)::float8), ''),
       string_agg(float8send(extract(epoch FROM (response.call->>'ended_at')::timestamptz)::float8), '')
FROM runs_run run JOIN runs_repeat repeat ON repeat.run_id = run.id
JOIN runs_response response ON response.repeat_id = repeat.id
WHERE run.endpoint_id = %(endpoint)s AND response.call IS NOT NULL
  AND (%(ended)s::timestamptz IS NULL OR run.started_at <= %(ended)s)
  AND (run.finished_at IS NULL OR run.finished_at >= %(began)s)
"""


def _count_calls(run: RunRecord) -> Mapping[int, SizeCounts]:
    """Return by repeat how many answers had how many calls in flight, over all runs on its endpoint."""
    known = {"run": run.pk, "endpoint": run.endpoint_id, "began": run.started_at, "ended": run.finished_at}
    with connection.cursor() as cursor:
        cursor.execute(_CALLS, known)
        columns = cursor.fetchone()
    kinds = (">i8", "?", ">f8", ">f8")
    repeats, is_answer, began, ended = map(np.frombuffer, (column or b"" for column in columns), kinds)
    n_calls = count_in_flight(began, ended)
    answers, n_alike = np.unique(np.stack([repeats, n_calls])[:, is_answer], axis=1, return_counts=True)
    counts: dict[int, dict[int, int]] = defaultdict(dict)
    for repeat, size, n in zip(*answers.tolist(), n_alike.tolist(), strict=True):
        counts[repeat][size] = n
    return counts
