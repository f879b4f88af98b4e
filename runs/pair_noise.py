"""The numeric noise that a pair is judged by: that of the two buckets that answered, as their own runs show it.

Whoever asks for the cause of a pair takes it from here, so that a page, a list and a comparison, of whole runs or of
two repeats, never judge one pair by two measures.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core.divergence import find_divergence
from evalboard.core.live_answers import is_left_out
from evalboard.core.numeric_noise import NumericNoise, estimate_ulp, noise_between, pooled_sd
from runs import pair_facts, stored_columns, stored_traces
from runs.models import Bucket, CaseColumns, Response, Run
from runs.stored_columns import NO_BUCKET
from runs.stored_traces import Place

NOISE_PAIRS = 200  # pairs of repeats of one bucket that are read to measure its noise
STEP_TRACES = 16  # traces of one bucket whose margins show the step of its logits

Ended = tuple[tuple[int, str], ...]  # (repeat id, digest of its columns) of the repeats that have ended, in order


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run shows of one of its buckets: sd in nats, None where no repeats that differ measure it; the logits'
    dtype, None where it is not known; ulp as `estimate_ulp` has it.
    """

    sd: float | None
    dtype: str | None
    ulp: float


UNKNOWN = Measured(None, None, 0.0)


class PairNoise:
    """The noise of two runs' pairs, measured over all of their repeats that have ended."""

    def __init__(self, baseline: Run, candidate: Run) -> None:
        self._baseline, self._candidate = (
            _measure(_ended(run), is_logged=run.source_id is not None) for run in (baseline, candidate)
        )

    def between(self, bucket: int | None, other: int | None) -> NumericNoise:
        """The noise between a bucket of the baseline and one of the candidate; None is not known."""
        ours, theirs = self._baseline.get(bucket, UNKNOWN), self._candidate.get(other, UNKNOWN)
        return noise_between((ours.sd, ours.dtype), (theirs.sd, theirs.dtype), ulp=max(ours.ulp, theirs.ulp))


def _ended(run: Run) -> Ended:
    packed = CaseColumns.objects.filter(repeat__run=run, repeat__finished_at__isnull=False)
    return tuple(packed.order_by("repeat__index").values_list("repeat_id", "digest"))


@functools.lru_cache(maxsize=64)  # a repeat that has ended never changes, and pages of one run's pairs ask again
def _measure(ended: Ended, *, is_logged: bool) -> dict[int | None, Measured]:
    """Bucket id → what these repeats of one run show of it."""
    repeat_ids = [repeat_id for repeat_id, _ in ended]
    found = {each.repeat_id: each for each in stored_columns.stream(repeat_ids)}
    traces = [found[each].traces for each in repeat_ids]
    # What is no draw says nothing of noise.
    served = [np.where(is_left_out(found[each].marks), NO_BUCKET, found[each].buckets) for each in repeat_ids]
    ids = {int(bucket) for buckets in served for bucket in np.unique(buckets)} - {NO_BUCKET}
    known = Bucket.objects.filter(pk__in=ids).select_related("fingerprint")
    return {
        bucket.pk: Measured(
            sd=_sd(repeat_ids, traces, [buckets == bucket.pk for buckets in served], is_logged=is_logged),
            dtype=pair_facts.dtype_of(bucket),
            ulp=_ulp(repeat_ids, [buckets == bucket.pk for buckets in served]),
        )
        for bucket in known
    }


def _sd(
    repeat_ids: Sequence[int],
    traces: Sequence[stored_columns.Digests],
    is_served: Sequence[NDArray[np.bool_]],
    *,
    is_logged: bool,
) -> float | None:
    """The noise of one bucket, from neighbouring repeats whose traces differ. is_served: bool[n], by repeat."""
    parts = []
    per_pair = max(NOISE_PAIRS // max(len(repeat_ids) - 1, 1), 1)
    for at in range(len(repeat_ids) - 1):
        differs = (traces[at] != traces[at + 1]).any(axis=1)
        cases = np.flatnonzero(is_served[at] & is_served[at + 1] & differs)
        cases = cases[:: max(len(cases) // per_pair, 1)][:per_pair]
        ours, theirs = (_places(repeat_id, cases) for repeat_id in repeat_ids[at : at + 2])
        pairs = [(ours[case], theirs[case]) for case in ours if case in theirs]
        for trace, other in stored_traces.read_pairs(pairs):
            found = find_divergence(trace, other, is_decimal=is_logged)
            parts.append((found.n_usable, found.shift_rms))
    return pooled_sd(parts)


def _ulp(repeat_ids: Sequence[int], is_served: Sequence[NDArray[np.bool_]]) -> float:
    """The step of one bucket's logits, read off the first repeat that it served some of."""
    for repeat_id, by_this in zip(repeat_ids, is_served, strict=True):
        if by_this.any():
            places = _places(repeat_id, np.flatnonzero(by_this)[:STEP_TRACES])
            margins = [trace.margins() for trace in stored_traces.read(places.values())]
            return estimate_ulp(np.concatenate(margins)) if margins else 0.0
    return 0.0


def _places(repeat_id: int, cases: NDArray[np.intp]) -> dict[int, Place]:
    """Case index → where the trace of its response is kept, for those that have one, by case."""
    rows = Response.objects.filter(repeat=repeat_id, case_index__in=cases.tolist())
    found = rows.order_by("case_index").values_list("case_index", "trace_block_id", "trace_slot")
    return {case: (block, slot) for case, block, slot in found if block is not None and slot is not None}
