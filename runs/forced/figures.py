"""Compute figures of a scoring: of each answer when it is stored, of all when the scoring ends."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from evalboard.contract.forced import ForcedFigures
from evalboard.core.forced import ForcedPositions, measure_forced, measure_positions, measure_responses
from evalboard.core.trace import TokenTrace, join_traces
from runs.models import ForcedAnswerRecord, ResponseRecord
from runs.store import TracePlace, stored_traces

ROWS_AT_ONCE = 1024
# More of them would take minutes and gigabytes, and move no interval that anybody reads.
MAX_ANSWERS = 20_000
MAX_POSITIONS = 2_000_000

Pair = tuple[TokenTrace | None, TokenTrace]  # an answer as its run has it, and as it was scored


def answer_figures(pairs: Sequence[Pair], kinds: Sequence[str]) -> list[dict[str, Any]]:
    """Return the figures of each scored answer (`contract.forced.AnswerFigures`) as they are stored.

    kinds: where the tokens of each are from, as `ForcedAnswerRecord.tokens` has it.
    """
    return [figures.to_stored() for figures in measure_responses(_positions(pairs, kinds))] if pairs else []


def deficits(trace: TokenTrace) -> NDArray[np.float64]:
    """Return float64[n]: the other stack's top-choice logprob minus each token's; 0 if it is the token."""
    return _positions([(None, trace)], [ForcedAnswerRecord.Tokens.SAME]).deficits


def scoring_figures(scoring_id: int) -> dict[str, Any] | None:
    """Return the figures of all scored answers (`store_figures`); None without any.

    Of a scoring too large to read whole, only the first answers count: `n_responses` says how many.
    """
    return _figures(_scored(scoring_id))


def figures_by_bucket(scoring_id: int, answers: QuerySet[ResponseRecord]) -> list[dict[str, Any]]:
    """Return the stored figures of each bucket's answers, the largest bucket first.

    answers: every response whose answer is scored. An answer that two buckets gave counts for both.
    """
    served = answers.exclude(engine_process=None).order_by()
    rows = served.values_list("engine_process__bucket", "case_index", "trace_digest").distinct()
    keys: defaultdict[int, set[tuple[int, bytes]]] = defaultdict(set)
    for bucket_id, index, digest in rows:
        keys[bucket_id].add((index, bytes(digest or b"")))
    stored = _scored(scoring_id).values_list("pk", "case_index", "trace_digest")
    ids = {(index, bytes(digest)): pk for pk, index, digest in stored}
    members = {bucket_id: [ids[key] for key in theirs if key in ids] for bucket_id, theirs in keys.items()}
    return [
        {"bucket": bucket_id, "figures": _figures(_scored(scoring_id).filter(pk__in=theirs))}
        for bucket_id, theirs in sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
        if theirs
    ]


def _figures(scored: QuerySet[ForcedAnswerRecord]) -> dict[str, Any] | None:
    rows, positions = _read_first(scored, max_answers=MAX_ANSWERS, max_positions=MAX_POSITIONS)
    if not rows:
        return None
    return store_figures(measure_forced(positions, answers=[str(row.pk) for row in rows]))


def store_figures(figures: ForcedFigures) -> dict[str, Any]:
    """Return figures as stored: the worst token's answer is replaced by its index, `response`."""
    stored = figures.to_stored()
    if worst := stored["worst"]:
        worst["response"] = int(worst.pop("answer"))
    return stored


def read_figures(stored: Mapping[str, Any]) -> ForcedFigures:
    """Return figures as `store_figures` stored them."""
    worst = stored["worst"]
    return ForcedFigures.from_stored({**stored, "worst": worst and {**worst, "answer": str(worst["response"])}})


def read_positions(
    scoring_id: int, *, max_answers: int, max_positions: int
) -> tuple[list[ForcedAnswerRecord], ForcedPositions]:
    """Return the first scored answers and their positions, within both limits but at least one."""
    return _read_first(_scored(scoring_id), max_answers=max_answers, max_positions=max_positions)


def count_within(
    lengths: Sequence[int | None], *, max_answers: int = MAX_ANSWERS, max_positions: int = MAX_POSITIONS
) -> int:
    """Return how many first answers fit the limits of figures, by their numbers of tokens; at least 1."""
    n_within = sum(end <= max_positions for end in accumulate(n or 0 for n in lengths[:max_answers]))
    return min(max(n_within, 1), len(lengths))


def _scored(scoring_id: int) -> QuerySet[ForcedAnswerRecord]:
    return ForcedAnswerRecord.objects.filter(scoring=scoring_id, error_code="").order_by("pk")


def _read_first(
    scored: QuerySet[ForcedAnswerRecord], *, max_answers: int, max_positions: int
) -> tuple[list[ForcedAnswerRecord], ForcedPositions]:
    lengths = list(scored.values_list("n_tokens", flat=True)[:max_answers])
    rows: list[ForcedAnswerRecord] = []
    pairs: list[Pair] = []
    for part in _stretches(scored, count_within(lengths, max_answers=max_answers, max_positions=max_positions)):
        rows += part
        pairs += _read(part)
    return rows, _positions(pairs, [row.tokens for row in rows])


def _positions(pairs: Sequence[Pair], kinds: Sequence[str]) -> ForcedPositions:
    sampled = [_aligned(ours, forced, kind) for (ours, forced), kind in zip(pairs, kinds, strict=True)]
    forced = [_ranked(ours, theirs, kind) for ours, (_, theirs), kind in zip(sampled, pairs, kinds, strict=True)]
    return measure_positions(join_traces(sampled), join_traces(forced))


def _aligned(sampled: TokenTrace | None, forced: TokenTrace, kind: str) -> TokenTrace:
    """Return the forced trace's tokens with the run's logprobs; NaN if the run has none for them."""
    if sampled is None or kind == ForcedAnswerRecord.Tokens.RETOKENISED:
        return replace(forced, logprobs=np.full(len(forced), np.nan, np.float32))
    return replace(forced, logprobs=sampled.logprobs)


def _ranked(sampled: TokenTrace, forced: TokenTrace, kind: str) -> TokenTrace:
    """The forced trace; of a rollout without the alternatives to tokens that the model did not sample."""
    if kind != ForcedAnswerRecord.Tokens.AS_GIVEN:
        return forced
    is_sampled = ~np.isnan(sampled.logprobs)[:, None]
    return replace(forced, alternative_logprobs=np.where(is_sampled, forced.alternative_logprobs, np.float32(np.nan)))


def _stretches(scored: "QuerySet[ForcedAnswerRecord]", n_rows: int) -> Iterator[list[ForcedAnswerRecord]]:
    """The first rows, in their order, so many at a time."""
    for first in range(0, n_rows, ROWS_AT_ONCE):
        yield list(scored[first : min(first + ROWS_AT_ONCE, n_rows)])


def _read(rows: Sequence[ForcedAnswerRecord]) -> list[Pair]:
    keys = {(row.repeat_id, row.case_index) for row in rows}
    responses = ResponseRecord.objects.filter(
        repeat__in={repeat for repeat, _ in keys}, case_index__in={index for _, index in keys}
    ).exclude(trace_block=None)
    own: dict[tuple[int, int], TracePlace] = {
        (repeat, index): (block, slot or 0)
        for repeat, index, block, slot in responses.values_list(
            "repeat_id", "case_index", "trace_block_id", "trace_slot"
        )
    }
    sampled = {key: place for key, place in own.items() if key in keys}
    traces = dict(zip(sampled, stored_traces.read(sampled.values()), strict=True))
    forced = stored_traces.read([_place(row) for row in rows])
    return [(traces.get((row.repeat_id, row.case_index)), trace) for row, trace in zip(rows, forced, strict=True)]


def _place(row: ForcedAnswerRecord) -> TracePlace:
    assert row.trace_block_id is not None  # noqa: S101  for the type checker: a scored answer has a trace
    assert row.trace_slot is not None  # noqa: S101
    return row.trace_block_id, row.trace_slot
