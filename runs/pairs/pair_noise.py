"""The numeric noise that a pair is judged by: that of the two buckets that answered, as their own runs show it.

Whoever asks for the cause of a pair takes it from here, so that a page, a list and a comparison, of whole runs or of
two repeats, never judge one pair by two measures.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare import Divergence, find_divergences, is_steady_batch
from evalboard.core.profile import is_sampled
from evalboard.core.stats import (
    MIN_POSITIONS,
    ZERO_NOISE,
    NumericNoise,
    choose_larger_noise,
    estimate_ulp,
    is_left_out,
    measure_unevenness,
    median_sd,
)
from runs.models import Bucket, CaseColumns, Response, Run, Stray
from runs.pairs import pair_facts
from runs.store import NO_BUCKET, TracePlace, stored_columns, stored_traces

NOISE_PAIRS = 200  # pairs of repeats of one bucket that are read to measure its noise
STEP_TRACES = 16  # traces of one bucket whose margins show the step of its logits

Ended = tuple[tuple[int, str], ...]  # (repeat id, digest of its columns) of the repeats that have ended, in order
StrayPlaces = frozenset[tuple[int, int]]  # (case index, repeat id) of each response that another computation gave


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run shows of one of its buckets: sd in nats, None where no repeats that differ measure it; logits by
    name, None where they are not known; ulp as `estimate_ulp` has it, unevenness as `measure_unevenness`. is_moved:
    repeats gave the same tokens other bits.
    """

    sd: float | None
    logits: str | None
    ulp: float
    unevenness: float = 1.0
    batch_class: str = ""
    is_moved: bool = False


UNKNOWN = Measured(None, None, 0.0)


@dataclass(frozen=True, slots=True)
class _Repeats:
    """The repeats of one run that have ended, its strays, and whether its numbers are decimals.

    columns: by repeat, those that are in memory already; they say nothing that the digests do not.
    """

    ended: Ended
    strays: StrayPlaces
    is_logged: bool
    columns: dict[int, stored_columns.Columns] = field(compare=False)


class PairNoise:
    """The noise of two runs' pairs, measured over all of their repeats that have ended."""

    def __init__(self, baseline: Run, candidate: Run, columns: Iterable[stored_columns.Columns] = ()) -> None:
        """Measure both runs' noise. columns: of repeats of theirs, which then are not read for it."""
        loaded = {each.repeat_id: each for each in columns}
        ended = _ended((baseline, candidate))
        self._baseline, self._candidate = (
            _measure(_Repeats(ended[run.pk], _strays(run), run.is_reported, dict(loaded)))
            for run in (baseline, candidate)
        )
        self._are_batches_equal = baseline.suite_version_id == candidate.suite_version_id and not any(
            is_sampled(run.profile.settings["sampling"]) for run in (baseline, candidate)
        )

        self._between: dict[tuple[int | None, int | None], NumericNoise] = {}

    def between(self, bucket: int | None, other: int | None) -> NumericNoise:
        """Return the noise between a bucket of the baseline and one of the candidate; None is not known.

        It is zero (`NumericNoise.is_zero`) within one bucket of a steady batch class, unless repeats show otherwise.
        """
        if (bucket, other) not in self._between:  # asked for each of thousands of pairs
            self._between[bucket, other] = self._find_between(bucket, other)
        return self._between[bucket, other]

    def _find_between(self, bucket: int | None, other: int | None) -> NumericNoise:
        ours, theirs = self._baseline.get(bucket, UNKNOWN), self._candidate.get(other, UNKNOWN)
        is_steady = is_steady_batch(ours.batch_class, are_batches_equal=self._are_batches_equal)
        if bucket == other and is_steady and not (ours.is_moved or theirs.is_moved):
            return ZERO_NOISE
        return choose_larger_noise(
            (ours.sd, ours.logits),
            (theirs.sd, theirs.logits),
            ulp=max(ours.ulp, theirs.ulp),
            unevenness=max(ours.unevenness, theirs.unevenness),
        )


def _ended(runs: tuple[Run, ...]) -> dict[int, Ended]:
    """Return the repeats of each run that have ended, by its id."""
    packed = CaseColumns.objects.filter(repeat__run__in=runs, repeat__cases=None, repeat__finished_at__isnull=False)
    rows = packed.order_by("repeat__index").values_list("repeat__run", "repeat_id", "digest")
    by_run: dict[int, list[tuple[int, str]]] = {run.pk: [] for run in runs}
    for run_id, repeat_id, digest in rows:
        by_run[run_id].append((repeat_id, digest))
    return {run_id: tuple(repeats) for run_id, repeats in by_run.items()}


def _strays(run: Run) -> StrayPlaces:
    if not run.strays:
        return frozenset()
    repeats = dict(run.repeats.values_list("index", "pk"))
    places = Stray.objects.filter(run=run).listed().values_list("case_index", "repeat")
    return frozenset((case, repeats[index]) for case, index in places)


@functools.lru_cache(maxsize=64)  # a repeat that has ended never changes, and pages of one run's pairs ask again
def _measure(repeats: _Repeats) -> dict[int | None, Measured]:
    """Return bucket id → what these repeats of one run show of it, without its strays: they are another computation."""
    repeat_ids = [repeat_id for repeat_id, _ in repeats.ended]
    unread = [repeat_id for repeat_id in repeat_ids if repeat_id not in repeats.columns]
    columns = repeats.columns | {each.repeat_id: each for each in stored_columns.stream(unread)}
    repeats.columns.clear()  # the cache holds what it was asked for, and columns are large
    traces = [columns[each].traces for each in repeat_ids]
    # What is no draw says nothing of noise.
    served = {each: np.where(is_left_out(columns[each].marks), NO_BUCKET, columns[each].buckets) for each in repeat_ids}
    for case, repeat_id in repeats.strays:
        if repeat_id in served:
            served[repeat_id][case] = NO_BUCKET
    ids = {int(bucket) for buckets in served.values() for bucket in np.unique(buckets)} - {NO_BUCKET}
    known = Bucket.objects.filter(pk__in=ids).select_related("fingerprint")
    measured: dict[int | None, Measured] = {}
    for bucket in known:
        is_served = [buckets == bucket.pk for buckets in served.values()]
        partings = _part_repeats(repeat_ids, traces, is_served, is_logged=repeats.is_logged)
        sd = median_sd(parting.shift_rms for parting in partings if parting.n_usable >= MIN_POSITIONS)
        measured[bucket.pk] = Measured(
            sd=sd,
            logits=pair_facts.logits_of(bucket),
            ulp=_ulp(repeat_ids, is_served),
            unevenness=measure_unevenness(((each.shift_rms, each.n_usable) for each in partings), sd),
            batch_class=bucket.batch_class,
            is_moved=any(parting.drift_onset is not None for parting in partings),
        )
    return measured


def _part_repeats(
    repeat_ids: Sequence[int],
    traces: Sequence[stored_columns.Digests],
    is_served: Sequence[NDArray[np.bool_]],
    *,
    is_logged: bool,
) -> list[Divergence]:
    """Return how neighbouring repeats of one bucket part whose traces differ. is_served: bool[n], by repeat."""
    partings = []
    per_pair = max(NOISE_PAIRS // max(len(repeat_ids) - 1, 1), 1)
    for at in range(len(repeat_ids) - 1):
        differs = stored_columns.differ(traces[at], traces[at + 1])
        cases = np.flatnonzero(is_served[at] & is_served[at + 1] & differs)
        cases = cases[:: max(len(cases) // per_pair, 1)][:per_pair]
        ours, theirs = (_places(repeat_id, cases) for repeat_id in repeat_ids[at : at + 2])
        pairs = [(ours[case], theirs[case]) for case in ours if case in theirs]
        for sides in stored_traces.read_pair_columns(pairs):
            partings += find_divergences(*sides, is_decimal=is_logged)
    return partings


def _ulp(repeat_ids: Sequence[int], is_served: Sequence[NDArray[np.bool_]]) -> float:
    """Return the step of one bucket's logits, read off the first repeat that it served some of."""
    for repeat_id, by_this in zip(repeat_ids, is_served, strict=True):
        if by_this.any():
            places = _places(repeat_id, np.flatnonzero(by_this)[:STEP_TRACES])
            margins = [trace.margins() for trace in stored_traces.read(places.values())]
            return estimate_ulp(np.concatenate(margins)) if margins else 0.0
    return 0.0


def _places(repeat_id: int, cases: NDArray[np.intp]) -> dict[int, TracePlace]:
    """Return case index → where the trace of its response is kept, for those that have one, by case."""
    rows = Response.objects.filter(repeat=repeat_id, case_index__in=cases.tolist())
    places = rows.order_by("case_index").values_list("case_index", "trace_block_id", "trace_slot")
    return {case: (block, slot) for case, block, slot in places if block is not None and slot is not None}
