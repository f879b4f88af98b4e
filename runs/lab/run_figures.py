"""Compute the figures of a condition's run, compared case by case with the control's first pass."""

import numpy as np
from numpy.typing import NDArray

from evalboard.core.lab import ArmFigures
from runs.models import RepeatRecord, RepeatScore, ResponseRecord, RunRecord
from runs.run import measure_engine_time
from runs.store import stored_columns, stored_traces

FLIPS_READ = 100  # of an arm, spread evenly: enough for the middle of where they part


def whole_passes(run: RunRecord) -> list[RepeatRecord]:
    """Return the repeats of all cases that came to their end, in order."""
    return list(run.repeats.filter(cases=None, status=RunRecord.Status.FINISHED).order_by("index"))


def measure_run(run: RunRecord, first: RepeatRecord) -> ArmFigures:
    """Return the figures of a run's whole passes. first: the control's first pass."""
    passes = whole_passes(run)
    scores = RepeatScore.objects.filter(repeat__in=passes, scorer=run.suite_version.scorer_id)
    points = dict(scores.values_list("repeat", "points"))
    columns = {each.repeat_id: each for each in stored_columns.stream([first.pk, *(each.pk for each in passes)])}
    control = columns[first.pk]
    n_same = n_responses = 0
    flipped: list[tuple[int, int]] = []
    for one in passes:
        own = columns[one.pk]
        n_same += bool(np.array_equal(own.traces, control.traces) and control.traces.any(axis=1).all())
        if one.pk == first.pk:
            continue
        both = own.texts.any(axis=1) & control.texts.any(axis=1)
        n_responses += int(both.sum())
        differs: NDArray[np.bool_] = both & (own.texts != control.texts).any(axis=1)
        flipped += [(one.pk, index) for index in np.flatnonzero(differs).tolist()]
    time = measure_engine_time(run)
    return ArmFigures(
        points=tuple(points.get(one.pk) for one in passes),
        repeats=tuple(one.index for one in passes),
        n_same=n_same,
        n_responses=n_responses,
        n_flipped=len(flipped),
        first_flips=_first_flips(flipped[:: max(-(-len(flipped) // FLIPS_READ), 1)], first),
        n_tokens=time.n_tokens,
        seconds=time.seconds,
        n_starts=time.n_starts,
    )


def _first_flips(flipped: list[tuple[int, int]], first: RepeatRecord) -> tuple[int, ...]:
    """Return where responses leave the control's, in tokens from 0; those without tokens are left out."""
    repeats, cases = {repeat for repeat, _ in flipped}, {index for _, index in flipped}
    rows = ResponseRecord.objects.filter(
        repeat__in={first.pk, *repeats}, case_index__in=cases, trace_block__isnull=False
    )
    fields = ("repeat_id", "case_index", "trace_block_id", "trace_slot")
    places = {(repeat, index): (block, slot) for repeat, index, block, slot in rows.values_list(*fields)}
    pairs = [
        (places[first.pk, index], places[repeat, index])
        for repeat, index in flipped
        if (first.pk, index) in places and (repeat, index) in places
    ]
    return tuple(
        _part(ours.trace(at).token_ids, theirs.trace(at).token_ids)
        for ours, theirs in stored_traces.read_pair_columns(pairs)
        for at in range(len(ours))
    )


def _part(ours: NDArray[np.int32], theirs: NDArray[np.int32]) -> int:
    shorter = min(len(ours), len(theirs))
    parted = np.flatnonzero(ours[:shorter] != theirs[:shorter])
    return int(parted[0]) if len(parted) else shorter
