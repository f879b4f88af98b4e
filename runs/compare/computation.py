"""Tells whether the two sides of a comparison are one computation (docs/divergence.md).

By the bucket that served most of each side. Where both sides are that same bucket and of a steady batch class, the
digests of all cases decide. Where the stacks of both have scored the same answers, these do (scored_computation.py);
else the traces of some of the cases in which anything differs are read.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare import is_steady_batch
from evalboard.core.profile import is_sampled
from evalboard.core.stats import (
    OneComputation,
    assume_logit_sd,
    is_left_out,
    judge_distances,
    judge_steady,
    mean_within,
    tell_apart,
)
from runs.compare.inputs import Inputs, Side
from runs.compare.reading import read_responses
from runs.compare.scored_computation import MAX_REPEATS, choose_cases, judge_scored
from runs.pairs import TracedText, distance_tables
from runs.pairs.pair_facts import logits_of
from runs.store import stored_columns, stored_traces

_NONE = np.zeros(2, np.uint64)  # the digest of a response that is missing

Indexes = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Chosen:
    """The repeats of one side that are looked at, case by case: int64[n, r] of their places and bool[n, r] which are
    there.
    """

    side: Side
    repeats: Indexes
    is_there: Bools

    @property
    def traces(self) -> NDArray[np.uint64]:
        """uint64[n, r, 2], digests; those of a case's first repeat where a repeat is not there."""
        if self.is_there.all() and self.repeats.shape[1] == self.side.traces.shape[1]:  # nearly always
            return self.side.traces
        digests = np.take_along_axis(self.side.traces, self.repeats[:, :, None], axis=1)
        traces: NDArray[np.uint64] = np.where(self.is_there[:, :, None], digests, digests[:, :1])
        return traces


def judge_computation(inputs: Inputs) -> dict[str, Any]:
    """Return {"is_one_bucket"} and the fields of OneComputation, as a comparison's summary keeps them."""
    ids = [bucket for side in (inputs.baseline, inputs.candidate) for bucket in side.bucket_ids[:1]]
    buckets = [inputs.buckets[bucket] for bucket in ids]
    is_one_bucket = len(ids) == 2 and len(set(ids)) == 1
    is_one_suite = inputs.baseline.setup.suite_digest == inputs.candidate.setup.suite_digest
    is_steady = (
        is_one_bucket
        and is_steady_batch(buckets[0].batch_class, are_batches_equal=is_one_suite)
        and _are_decoded_alike(inputs)
    )
    floor = max((assume_logit_sd(logits_of(bucket)) for bucket in buckets), default=0.0)
    judged = judge_scored(inputs, floor=floor) or _judge(inputs, is_one_bucket, is_steady, floor)
    return {"is_one_bucket": is_one_bucket, **asdict(judged)}


def _are_decoded_alike(inputs: Inputs) -> bool:
    """Whether one stack must give both sides the same bits: greedily, and to the same limits."""
    ours, theirs = inputs.baseline.setup, inputs.candidate.setup
    limits, other_limits = (ours.max_tokens, ours.stop), (theirs.max_tokens, theirs.stop)
    return limits == other_limits and ours.sampling == theirs.sampling and not is_sampled(ours.sampling)


def _judge(inputs: Inputs, is_one_bucket: bool, is_steady: bool, floor: float) -> OneComputation:
    ours, theirs = _choose(inputs.baseline), _choose(inputs.candidate)
    n_repeats = np.column_stack([side.is_there.sum(axis=1) for side in (ours, theirs)])
    has_repeats = np.all(n_repeats >= 2, axis=1)
    digests = np.concatenate([ours.traces, theirs.traces], axis=1)[has_repeats]
    is_moved: Bools = np.any(stored_columns.differ(digests, digests[:, :1]), axis=1)
    halves = np.split(digests, [ours.repeats.shape[1]], axis=1)
    do_repeats_agree = not any(stored_columns.differ(half, half[:, :1]).any() for half in halves)
    is_same = is_one_bucket and not is_moved.any()
    if do_repeats_agree and (is_steady or (is_same and _has_traces(ours, choose_cases(np.flatnonzero(has_repeats))))):
        return judge_steady(is_moved)
    moved = np.flatnonzero(has_repeats)[is_moved]
    judged = _measure(ours, theirs, choose_cases(moved), floor)
    if is_one_bucket and do_repeats_agree:
        return tell_apart(judged, n_repeats[moved], n_cases=len(is_moved), floor=floor)
    return judged


def _choose(side: Side) -> Chosen:
    """The first draws of the side's main bucket that have a trace."""
    main = side.bucket_ids[0] if side.bucket_ids else -1
    is_ours = (side.buckets == main) & ~is_left_out(side.marks) & stored_columns.differ(side.traces, _NONE)
    repeats = np.argsort(~is_ours, axis=1, kind="stable")[:, :MAX_REPEATS]
    return Chosen(side, repeats, np.take_along_axis(is_ours, repeats, axis=1))


def _measure(ours: Chosen, theirs: Chosen, cases: Indexes, floor: float) -> OneComputation:
    """Read the chosen responses of these cases and judge how far they lie apart."""
    sides = [_read(chosen, cases) for chosen in (ours, theirs)]
    tables = distance_tables([[*answers, *others] for answers, others in zip(*sides, strict=True)])
    numbers = []
    for answers, table in zip(sides[0], tables, strict=True):
        n = len(answers)
        across = table[:n, n:]
        known = across[~np.isnan(across)]
        far = float(known.mean()) if len(known) else np.nan
        numbers.append((far, mean_within(table[:n, :n]), mean_within(table[n:, n:])))
    far_apart, within, within_too = np.array(numbers, np.float64).reshape(-1, 3).T
    return judge_distances(far_apart, (within, within_too), floor=floor)


def _has_traces(chosen: Chosen, cases: Indexes) -> bool:
    """Return whether the first responses of these cases have logprobs: equal texts say nothing of equal bits."""
    responses = read_responses(chosen.side, cases, chosen.repeats[cases, 0], np.zeros(len(cases), np.bool_))
    return bool(responses) and all(response.place is not None for response in responses)


def _read(chosen: Chosen, cases: Indexes) -> list[list[TracedText]]:
    """The chosen responses of each case, with their traces."""
    is_there = chosen.is_there[cases]
    rows, columns = np.nonzero(is_there)
    repeats = chosen.repeats[cases][rows, columns]
    responses = read_responses(chosen.side, cases[rows], repeats, np.zeros(len(rows), np.bool_))
    traced = [response for response in responses if response.place is not None]
    traces = iter(stored_traces.read(response.place for response in traced if response.place is not None))
    is_logged = chosen.side.key.run.is_reported
    by_case: list[list[TracedText]] = [[] for _ in cases]
    for row, response in zip(rows.tolist(), responses, strict=True):
        trace = next(traces) if response.place is not None else None
        by_case[row].append(TracedText(response.text, trace, response.vocabulary_id, is_logged=is_logged))
    return by_case
