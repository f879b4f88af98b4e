"""Tell whether the logprobs of a comparison's two sides agree (docs/divergence.md).

By the main bucket of each side. If both sides have that same bucket and a steady batch class, the digests of all cases
decide. If the stacks of both have scored the same answers, these do: both read the same tokens, so that no flip ends
what can be compared, and what a stack reads is compared with what the other one reads and never with what was decoded,
for a prefill uses other kernels. Else the traces of some of the cases in which anything differs are read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.compare import OneComputation
from evalboard.core.compare.comparability import is_steady_batch
from evalboard.core.compare.sides import AnswerKey, Bools, Indexes, ScoredAnswer, ScoredAnswers, Side, Traces
from evalboard.core.compare.traced_text import CaseDistances, TracedText, WordsById, distance_tables
from evalboard.core.stats import (
    MIN_CASES_JUDGED,
    assume_logit_sd,
    average_distances,
    count_equal,
    is_left_out,
    judge_distances,
    judge_steady,
    tell_apart,
)
from evalboard.core.trace import TokenTrace, differ

MAX_CASES = 100  # that are judged
MAX_UNEQUAL = 1000  # that are read to know which of them differ, where digests do not show it
MAX_REPEATS = 5  # of each side that are read
_NONE = np.zeros(2, np.uint64)  # the digest of a response that is missing


@dataclass(frozen=True, eq=False)
class Chosen:
    """The repeats of one side to read, by case.

    repeats: int64[n, r], their places. is_there: bool[n, r].
    """

    side: Side
    repeats: Indexes
    is_there: Bools

    @property
    def digests(self) -> NDArray[np.uint64]:
        """uint64[n, r, 2], of traces; those of a case's first repeat where a repeat is not there."""
        if self.is_there.all() and self.repeats.shape[1] == self.side.traces.shape[1]:  # nearly always
            return self.side.traces
        digests = np.take_along_axis(self.side.traces, self.repeats[:, :, None], axis=1)
        traces: NDArray[np.uint64] = np.where(self.is_there[:, :, None], digests, digests[:, :1])
        return traces

    def has_traces(self, cases: Indexes) -> bool:
        """Return whether the first responses of these cases have logprobs.

        Equal texts do not prove equal bits.
        """
        needs_text = np.zeros(len(cases), np.bool_)
        responses = self.side.responses.read(cases, self.repeats[cases, 0], needs_text)
        return bool(responses) and all(each is not None and each.place is not None for each in responses)

    def read(self, cases: Indexes, traces: Traces) -> list[list[TracedText]]:
        """Return the chosen responses of each case, with their traces."""
        rows, columns = np.nonzero(self.is_there[cases])
        repeats = self.repeats[cases][rows, columns]
        responses = self.side.responses.read(cases[rows], repeats, np.zeros(len(rows), np.bool_))
        places = [response.place for response in responses if response is not None and response.place is not None]
        read = iter(traces.read(places))
        by_case: list[list[TracedText]] = [[] for _ in cases]
        for row, response in zip(rows.tolist(), responses, strict=True):
            trace = next(read) if response is not None and response.place is not None else None
            vocabulary = None if response is None else response.vocabulary_id
            by_case[row].append(TracedText("", trace, vocabulary, is_logged=self.side.is_reported))
        return by_case


@dataclass(frozen=True, slots=True)
class CaseRead:
    """The answers of a case as the baseline's stack and as the candidate's read them, in one order."""

    baseline: list[TracedText] = field(default_factory=list)
    candidate: list[TracedText] = field(default_factory=list)

    def average(self, table: CaseDistances, *, is_steady: bool) -> NDArray[np.float64]:
        """Return float64[3]: the mean distance across the stacks and within either, NaN where it is not known.

        table: their `distance_tables`, the baseline's answers first. is_steady: both give the same bits for the same
        tokens. Each answer is then held against itself; else all of a case are held against each other, as far as they
        begin alike.
        """
        n = len(self.baseline)
        if not is_steady:
            averages: NDArray[np.float64] = average_distances(table.nats[None], table.are_alike[None], n)[0]
            return averages
        across = np.diagonal(table.nats[:n, n:])
        known = across[~np.isnan(across)]
        return np.array([known.mean() if len(known) else np.nan, 0.0, 0.0])


def judge_computation(
    baseline: Side, candidate: Side, traces: Traces, words: WordsById, *, is_one_vocabulary: bool = True
) -> dict[str, Any]:
    """Return {"is_one_bucket"} and the fields of OneComputation, as a comparison's summary keeps them.

    is_one_vocabulary: an id is one token on both sides. Else equal digests of traces say nothing.
    """
    sides = baseline, candidate
    mains = [side.known[bucket] for side in sides for bucket in side.bucket_ids[:1]]
    is_one_bucket = len(mains) == 2 and baseline.bucket_ids[0] == candidate.bucket_ids[0]
    is_one_suite = baseline.setup.suite_digest == candidate.setup.suite_digest
    is_steady = (
        is_one_bucket
        and is_steady_batch(mains[0].batch_class, are_batches_equal=is_one_suite)
        and _are_decoded_alike(baseline, candidate)
    )
    floor = max((assume_logit_sd(bucket.logits) for bucket in mains), default=0.0)

    def measure(cases: Sequence[CaseRead], *, is_held_alone: bool = False) -> OneComputation:
        tables = distance_tables([[*each.baseline, *each.candidate] for each in cases], words)
        numbers = [each.average(table, is_steady=is_held_alone) for each, table in zip(cases, tables, strict=True)]
        across, within, within_too = np.array(numbers, np.float64).reshape(-1, 3).T
        return judge_distances(across, (within, within_too), floor=floor)

    judged = _judge_scored(sides, traces, measure)
    if judged is None:
        (ours, n_strays), (theirs, n_strays_too) = _choose(baseline), _choose(candidate)

        def have_traces(cases: Indexes) -> bool:
            return ours.has_traces(cases) and theirs.has_traces(cases)

        n_repeats = np.column_stack([side.is_there.sum(axis=1) for side in (ours, theirs)])
        has_repeats = np.all(n_repeats >= 2, axis=1)
        digests = np.concatenate([ours.digests, theirs.digests], axis=1)[has_repeats]
        moved = np.flatnonzero(has_repeats)
        if is_one_vocabulary:
            moved = moved[np.any(differ(digests, digests[:, :1]), axis=1)]
        halves = np.split(digests, [ours.repeats.shape[1]], axis=1)
        do_agree = ~np.any([differ(half, half[:, :1]).any(axis=1) for half in halves], axis=0)
        do_agree = do_agree[np.isin(np.flatnonzero(has_repeats), moved)]
        n_unread = 0
        if baseline.is_reported or candidate.is_reported or not is_one_vocabulary:
            n_unread = max(len(moved) - MAX_UNEQUAL, 0)
            moved, do_agree = _find_moved(moved, lambda some: _read_cases(ours, theirs, some, traces), words)
        is_moved: Bools = np.isin(np.flatnonzero(has_repeats), moved)
        n_equal = len(is_moved) - len(moved) - n_unread
        equal = choose_cases(np.setdiff1d(np.flatnonzero(has_repeats), moved))
        is_same = not len(moved) and n_equal >= (1 if is_one_bucket else MIN_CASES_JUDGED)
        if do_agree.all() and (is_steady or (is_same and have_traces(equal))):
            judged = judge_steady(is_moved)
        else:
            cases = choose_cases(moved)
            judged = measure(_read_cases(ours, theirs, cases, traces)).model_copy(update={"n_differing": len(cases)})
            if do_agree.all():
                judged = tell_apart(judged, n_repeats[moved], n_cases=len(is_moved), floor=floor)
            if judged.answer == "unknown" and have_traces(equal):
                judged = count_equal(judged, n_repeats[moved[do_agree]], n_equal=n_equal, n_differing=len(moved))
        strays = {"n_strays_baseline": n_strays, "n_strays_candidate": n_strays_too}
        judged = judged.model_copy(update=strays if any(strays.values()) else {})
    return {"is_one_bucket": is_one_bucket, **judged.to_stored()}


def choose_cases(cases: Indexes, n: int = MAX_CASES) -> Indexes:
    """Return at most n of these, evenly out of all."""
    return cases[:: max(len(cases) // n, 1)][:n]


def _read_cases(ours: Chosen, theirs: Chosen, cases: Indexes, traces: Traces) -> list[CaseRead]:
    both = zip(ours.read(cases, traces), theirs.read(cases, traces), strict=True)
    return [CaseRead(*each) for each in both]


def _find_moved(cases: Indexes, read: Callable[[Indexes], list[CaseRead]], words: WordsById) -> tuple[Indexes, Bools]:
    """Find the cases in which anything differs, and tell of each whether the repeats of either side agree.

    Decimals differ by more than a step. cases: whose digests differ, or prove nothing.
    """
    moved, do_agree = [], []
    cases = choose_cases(cases, MAX_UNEQUAL)
    for part in np.split(cases, range(MAX_CASES, len(cases), MAX_CASES)):
        some = read(part)
        tables = distance_tables([[*each.baseline, *each.candidate] for each in some], words)
        for case, each, table in zip(part.tolist(), some, tables, strict=True):
            n = len(each.baseline)
            if not table.are_alike.all():
                moved.append(case)
                do_agree.append(bool(table.are_alike[:n, :n].all() and table.are_alike[n:, n:].all()))
    return np.array(moved, np.int64), np.array(do_agree, np.bool_)


def do_repeats_agree(side: Side, traces: Traces, words: WordsById) -> bool:
    """Tell whether all repeats of a side are equal: texts, and logprobs to the bit (decimals: a step).

    If digests do not show it, MAX_UNEQUAL cases are read.
    """
    is_there = side.is_there
    first = np.argmax(is_there, axis=1)[:, None, None]
    texts, moved = (
        np.any(differ(each, np.take_along_axis(each, first, axis=1)) & is_there, axis=1)
        for each in (side.texts, side.traces)
    )
    if texts.any() or not (side.is_reported and moved.any()):
        return not (texts | moved).any()
    repeats = np.broadcast_to(np.arange(is_there.shape[1]), is_there.shape)
    chosen = Chosen(side, repeats, is_there)
    cases = np.flatnonzero(moved)
    return not len(_find_moved(cases, lambda some: [CaseRead(each) for each in chosen.read(some, traces)], words)[0])


def _are_decoded_alike(ours: Side, theirs: Side) -> bool:
    """Return whether one stack must give both sides the same bits: greedy, with equal limits."""
    limits, other_limits = ((side.setup.max_tokens, side.setup.stop) for side in (ours, theirs))
    sampling = ours.setup.sampling
    return limits == other_limits and sampling == theirs.setup.sampling and not ours.draws.may_sample


def _choose(side: Side) -> tuple[Chosen, int]:
    """Return the first samples of the side's main bucket with a trace, and how many are left out."""
    main = side.bucket_ids[0] if side.bucket_ids else -1
    is_ours = (side.buckets == main) & ~is_left_out(side.marks) & differ(side.traces, _NONE)
    is_stray = np.zeros_like(is_ours)
    is_stray[side.strays] = True
    is_stray &= is_ours
    # Most of a repeat is no other build's: the others are copies of each other, and it is what was decoded.
    is_stray &= 2 * is_stray.sum(axis=0) <= is_ours.sum(axis=0)
    n_strays = int(is_stray.sum())
    is_ours &= ~is_stray
    repeats = np.argsort(~is_ours, axis=1, kind="stable")[:, :MAX_REPEATS]
    return Chosen(side, repeats, np.take_along_axis(is_ours, repeats, axis=1)), n_strays


def _judge_scored(
    sides: tuple[Side, Side], traces: Traces, measure: Callable[..., OneComputation]
) -> OneComputation | None:
    """Judge by what both stacks have scored; None if that is nothing, or not enough."""
    scored = [(side, answers) for side in sides if (answers := side.responses.scored) is not None]
    if not scored:
        return None
    classes = [bucket.batch_class for side in sides for bucket in side.known.values()]
    is_steady = all(is_steady_batch(each, are_batches_equal=False) for each in classes)
    has_some = [np.isin(side.case_indexes, answers.cases()) for side, answers in scored]
    cases = choose_cases(np.flatnonzero(np.any(has_some, axis=0)))
    by_case = {case: CaseRead() for case in cases.tolist()}
    for side, answers in scored:
        for case, ours, theirs in _read_scored(side, answers, cases, traces):
            by_case[case].baseline.append(ours)
            by_case[case].candidate.append(theirs)
    read = [each for each in by_case.values() if each.baseline]
    judged = measure(read, is_held_alone=is_steady)
    if judged.answer == "unknown":
        return None
    n_positions = sum(len(answer) for each in read for answer in _traces(each.baseline))
    return judged.model_copy(update={"n_positions": n_positions})


def _read_scored(
    side: Side, answers: ScoredAnswers, cases: Indexes, traces: Traces
) -> Iterator[tuple[int, TracedText, TracedText]]:
    """The side's answers to these cases that both stacks have read, each with the place of its case."""
    place = dict(zip(side.case_indexes[cases].tolist(), cases.tolist(), strict=True))
    both = answers.read(list(place))
    by_case = groupby(sorted(both[0].keys() & both[1].keys()), key=itemgetter(0))
    keys = [key for _, known in by_case for key in islice(known, MAX_REPEATS)]
    texts = [_read_traces(known, keys, traces) for known in both]
    yield from ((place[case], text, text_too) for (case, _), text, text_too in zip(keys, *texts, strict=True))


def _read_traces(
    answers: Mapping[AnswerKey, ScoredAnswer], keys: Sequence[AnswerKey], traces: Traces
) -> list[TracedText]:
    read = traces.read([answers[key].place for key in keys])
    return [
        TracedText("", trace, answers[key].vocabulary_id, is_logged=False)
        for key, trace in zip(keys, read, strict=True)
    ]


def _traces(texts: Sequence[TracedText]) -> Iterator[TokenTrace]:
    return (text.trace for text in texts if text.trace is not None)
