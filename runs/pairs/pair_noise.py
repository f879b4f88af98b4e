"""The numeric noise by which a pair is judged: measured on the runs of the two buckets that answered.

Every page, list and comparison uses this one, so that a pair is always judged by the same measure.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from evalboard.core.compare import Measured, PairNoise, measure_buckets
from runs.models import BucketRecord, CaseColumns, ResponseRecord, RunRecord, Stray
from runs.pairs import pair_facts
from runs.store import NO_BUCKET, TracePlace, stored_columns, stored_traces

Ended = tuple[tuple[int, str], ...]  # (repeat id, digest of its columns) of the repeats that have ended, in order
StrayPlaces = frozenset[tuple[int, int]]  # (case index, repeat id) of each response that another computation gave


@dataclass(frozen=True, slots=True)
class _NoiseRepeats:
    """The ended repeats of one run, its responses from other builds, and whether its numbers are decimals.

    columns: by repeat, those already in memory; the digests identify them.
    """

    ended: Ended
    strays: StrayPlaces
    is_logged: bool
    columns: dict[int, stored_columns.Columns] = field(compare=False)


def measure_pair_noise(
    baseline: RunRecord, candidate: RunRecord, columns: Iterable[stored_columns.Columns] = ()
) -> PairNoise:
    """Measure the noise of two runs' pairs over all of their repeats that have ended.

    columns: of repeats of theirs, which then are not read for it.
    """
    loaded = {each.repeat_id: each for each in columns}
    ended = _ended((baseline, candidate))
    ours, theirs = (
        _measure(_NoiseRepeats(ended[run.pk], _strays(run), run.is_reported, dict(loaded)))
        for run in (baseline, candidate)
    )
    are_batches_equal = baseline.suite_version_id == candidate.suite_version_id and not any(
        pair_facts.draws_of(run).may_sample for run in (baseline, candidate)
    )
    return PairNoise(ours, theirs, are_batches_equal=are_batches_equal)


def _ended(runs: tuple[RunRecord, ...]) -> dict[int, Ended]:
    """Return the ended repeats of each run, by its id."""
    packed = CaseColumns.objects.filter(repeat__run__in=runs, repeat__cases=None, repeat__finished_at__isnull=False)
    rows = packed.order_by("repeat__index").values_list("repeat__run", "repeat_id", "digest")
    by_run: dict[int, list[tuple[int, str]]] = {run.pk: [] for run in runs}
    for run_id, repeat_id, digest in rows:
        by_run[run_id].append((repeat_id, digest))
    return {run_id: tuple(repeats) for run_id, repeats in by_run.items()}


def _strays(run: RunRecord) -> StrayPlaces:
    if not run.strays:
        return frozenset()
    repeats = dict(run.repeats.values_list("index", "pk"))
    places = Stray.objects.filter(run=run).listed().values_list("case_index", "repeat")
    return frozenset((case, repeats[index]) for case, index in places)


@functools.lru_cache(maxsize=64)  # a repeat that has ended never changes, and pages of one run's pairs ask again
def _measure(repeats: _NoiseRepeats) -> dict[int | None, Measured]:
    """Return bucket id → the noise of these repeats of one run, without responses from other builds."""
    repeat_ids = [repeat_id for repeat_id, _ in repeats.ended]
    unread = [repeat_id for repeat_id in repeat_ids if repeat_id not in repeats.columns]
    columns = repeats.columns | {each.repeat_id: each for each in stored_columns.stream(unread)}
    repeats.columns.clear()  # the cache holds what it was asked for, and columns are large
    ids = {int(bucket) for each in repeat_ids for bucket in np.unique(columns[each].buckets)} - {NO_BUCKET}
    at = {repeat_id: place for place, repeat_id in enumerate(repeat_ids)}
    return measure_buckets(
        [columns[each] for each in repeat_ids],
        [(case, at[repeat_id]) for case, repeat_id in repeats.strays if repeat_id in at],
        BucketRecord.objects.filter(pk__in=ids).select_related("fingerprint"),
        find_places=lambda repeat, cases: _places(repeat_ids[repeat], cases),
        reader=stored_traces,
        is_reported=repeats.is_logged,
    )


def _places(repeat_id: int, cases: Sequence[int]) -> dict[int, TracePlace]:
    """Return case index → place of its response's trace, for those that have one."""
    rows = ResponseRecord.objects.filter(repeat=repeat_id, case_index__in=cases)
    places = rows.order_by("case_index").values_list("case_index", "trace_block_id", "trace_slot")
    return {case: (block, slot) for case, block, slot in places if block is not None and slot is not None}
