"""Tells whether two stacks are one computation by the answers that both have scored (docs/divergence.md).

Both read the same tokens, so that no flip ends what can be compared. What a stack reads is held against what the other
one reads and never against what was decoded: a prefill goes through other kernels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare import is_steady_batch
from evalboard.core.stats import OneComputation, judge_distances, mean_within
from evalboard.core.trace import Trace
from runs.compare.inputs import Inputs, Side, scored_on_both
from runs.models import ForcedAnswer
from runs.pairs import TracedText, distance_tables
from runs.store import TracePlace, stored_traces

MAX_CASES = 100  # that are read
MAX_REPEATS = 5  # of each side that are read

Indexes = NDArray[np.int64]
Key = tuple[int, bytes]  # of an answer: its case, and the digest of the trace that was decoded
Read = tuple[TracePlace, int | None]  # an answer as one stack read it: its trace and whose words its tokens are


@dataclass(frozen=True, slots=True)
class CaseRead:
    """The answers of a case as the baseline's stack and as the candidate's read them, in one order."""

    baseline: list[TracedText] = field(default_factory=list)
    candidate: list[TracedText] = field(default_factory=list)

    def average(self, table: NDArray[np.float64], *, is_steady: bool) -> tuple[float, float, float]:
        """Return the mean distance across the stacks and within either, NaN where nobody knows it.

        table: their `distance_tables`, the baseline's answers first. is_steady: both give the same bits for the same
        tokens. Each answer is then held against itself; else all of a case are held against each other, as far as they
        begin alike.
        """
        n = len(self.baseline)
        across = table[:n, n:]
        if is_steady:
            return _mean(np.diagonal(across)), 0.0, 0.0
        return _mean(across), mean_within(table[:n, :n]), mean_within(table[n:, n:])


def choose_cases(cases: Indexes) -> Indexes:
    """Return at most MAX_CASES of these, evenly out of all."""
    return cases[:: max(len(cases) // MAX_CASES, 1)][:MAX_CASES]


def judge_scored(inputs: Inputs, *, floor: float) -> OneComputation | None:
    """Test by what both stacks have scored; None where that is nothing, or says nothing.

    floor: as `judge_distances` has it.
    """
    keys = inputs.baseline.key, inputs.candidate.key
    sides = [(side, both) for side in (inputs.baseline, inputs.candidate) if (both := scored_on_both(side.key, *keys))]
    if not sides:
        return None
    classes = [inputs.buckets[bucket].batch_class for key in keys for bucket in key.bucket_ids]
    is_steady = all(is_steady_batch(each, are_batches_equal=False) for each in classes)
    scored = [np.isin(side.case_indexes, _cases_of(both[0])) for side, both in sides]
    cases = choose_cases(np.flatnonzero(np.any(scored, axis=0)))
    by_case = {case: CaseRead() for case in cases.tolist()}
    for side, both in sides:
        for case, ours, theirs in _read(side, both, cases):
            by_case[case].baseline.append(ours)
            by_case[case].candidate.append(theirs)
    read = [each for each in by_case.values() if each.baseline]
    tables = distance_tables([[*each.baseline, *each.candidate] for each in read])
    numbers = [each.average(table, is_steady=is_steady) for each, table in zip(read, tables, strict=True)]
    across, within, within_too = np.array(numbers, np.float64).reshape(-1, 3).T
    judged = judge_distances(across, (within, within_too), floor=floor)
    if judged.answer == "unknown":
        return None
    return replace(judged, n_positions=sum(len(answer) for each in read for answer in _traces(each.baseline)))


def _cases_of(scoring: int) -> list[int]:
    return list(ForcedAnswer.objects.filter(scoring=scoring, error_code="").values_list("case_index", flat=True))


def _read(side: Side, both: tuple[int, int], cases: Indexes) -> Iterator[tuple[int, TracedText, TracedText]]:
    """The side's answers to these cases that both stacks have read, each with the place of its case."""
    place = dict(zip(side.case_indexes[cases].tolist(), cases.tolist(), strict=True))
    ours, theirs = (_answers(scoring, list(place)) for scoring in both)
    by_case = groupby(sorted(ours.keys() & theirs.keys()), key=itemgetter(0))
    keys = [key for _, answers in by_case for key in islice(answers, MAX_REPEATS)]
    texts = [_texts([answers[key] for key in keys]) for answers in (ours, theirs)]
    yield from ((place[case], text, text_too) for (case, _), text, text_too in zip(keys, *texts, strict=True))


def _answers(scoring: int, case_indexes: Sequence[int]) -> dict[Key, Read]:
    """The scored answers to these cases whose prompt is the one that was sent, and no other template's."""
    rows = ForcedAnswer.objects.filter(
        scoring=scoring, case_index__in=case_indexes, error_code="", is_rendered=False, trace_block__isnull=False
    )
    fields = "case_index", "trace_digest", "trace_block_id", "trace_slot", "engine_process__vocabulary_id"
    return {
        (case, bytes(digest)): ((block, slot), vocabulary)
        for case, digest, block, slot, vocabulary in rows.values_list(*fields)
    }


def _texts(answers: Sequence[Read]) -> list[TracedText]:
    traces = stored_traces.read(place for place, _ in answers)
    return [
        TracedText("", trace, vocabulary, is_logged=False)
        for trace, (_, vocabulary) in zip(traces, answers, strict=True)
    ]


def _traces(texts: Sequence[TracedText]) -> Iterator[Trace]:
    return (text.trace for text in texts if text.trace is not None)


def _mean(distances: NDArray[np.float64]) -> float:
    known = distances[~np.isnan(distances)]
    return float(known.mean()) if len(known) else np.nan
