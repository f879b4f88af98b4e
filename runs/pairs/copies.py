"""Evidence besides answers that a repeat is a copy: independent runs, and our own engine's batches."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np
from django.db.models import F, Q
from numpy.typing import NDArray

from evalboard.core.compare import MAX_USUAL, are_independent, needs_usual
from runs.models import RepeatRecord, RunRecord
from runs.store import stored_columns

Status = RunRecord.Status
__all__ = ["find_company", "find_usual", "needs_usual", "read_usual"]


def find_usual(runs: Collection[RunRecord]) -> dict[int, list[tuple[int, str]]]:
    """Return run id → (id, digest of the columns) of the repeats of its independent runs, in one query.

    These are finished runs of the same suite version, endpoint, profile and bucket that ran at least an hour apart, and
    logs that a person imported as a second log of the same side. What nobody knows may be the same bucket. A
    run that has not finished has none.
    """
    wanted = Q()
    ids = sorted({run.pk for run in runs})
    if not ids:
        return {}
    for run in runs:
        alike = {"suite_version": run.suite_version_id, "endpoint": run.endpoint_id, "profile": run.profile_id}
        wanted |= Q(**{f"run__{name}": value for name, value in alike.items()})
    ended = RepeatRecord.objects.filter(wanted, cases=None, status=Status.FINISHED, run__status=Status.FINISHED)
    rows = ended.exclude(columns=None).annotate(packed_as=F("columns__digest"))
    repeats = list(rows.select_related("run__bucket__fingerprint").order_by("run_id", "index"))
    known = {repeat.run_id: repeat.run for repeat in repeats}
    usual: dict[int, list[tuple[int, str]]] = {pk: [] for pk in ids}
    for run in (known[pk] for pk in ids if pk in known):
        theirs = [(each.pk, each.packed_as) for each in repeats if are_independent(run, each.run)]
        usual[run.pk] = theirs[:MAX_USUAL]
    return usual


def read_usual(repeat_ids: Sequence[int], cases: Any) -> NDArray[np.uint64] | None:
    """Return uint64[n, m, 2], text digests of these repeats of independent runs; None without any."""
    read = [columns.take(cases).texts for columns in stored_columns.stream(repeat_ids)] if repeat_ids else []
    return np.stack(read, axis=1) if read else None


def find_company(run: RunRecord, repeat_ids: Sequence[int]) -> Sequence[Hashable]:
    """Return the engine processes and the batch sizes of each repeat; of shuffled ones each its own."""
    if run.is_shuffled:
        return repeat_ids
    sizes = stored_columns.batch_sizes(repeat_ids)
    links = RepeatRecord.engine_processes.through.objects.filter(repeat__in=repeat_ids)
    processes: dict[int, set[int]] = defaultdict(set)
    for repeat, process in links.values_list("repeat", "engineprocess"):
        processes[repeat].add(process)
    return [(frozenset(processes[each]), tuple(sorted(sizes[each].items()))) for each in repeat_ids]
