"""Choose the answers of a run to score, their order, and their tokens in the target's tokenizer."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Count, Max, Q, QuerySet, Sum

from evalboard.contract.forced import ForcedCost
from evalboard.core.trace import TokenTrace, read_traces, unpack_selection
from runs.models import Case, ForcedAnswerRecord, ForcedScoringRecord, ResponseRecord, TraceBlock
from runs.pairs import stored_words

CASES_AT_ONCE = 256  # whose responses are looked at for the next answers
ANSWERS_AT_ONCE = 32  # that are scored and stored together: a trace block

Tokens = ForcedAnswerRecord.Tokens


@dataclass(frozen=True, slots=True)
class AnswerToForce:
    """One answer of a case, as its run has it. trace: None where it was read without tokens.

    is_apart: what the model thought stands apart from the text.
    """

    case_index: int
    trace_digest: bytes
    repeat_id: int
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    trace: TokenTrace | None
    text: str
    is_apart: bool
    vocabulary_id: int | None


@dataclass(frozen=True, slots=True)
class GivenTokens:
    """An answer as an engine is given it. Ids that are None are made of the case's messages and of `text`."""

    kind: str  # one of Tokens
    prompt_token_ids: list[int] | None
    answer_token_ids: list[int] | None
    text: str


def answers_of(
    run_id: int, *, repeats: Collection[int], case_indexes: Collection[int] | None
) -> QuerySet[ResponseRecord]:
    """Select the first response with each distinct answer of a case, in scoring order.

    Missing responses and empty answers have nothing to score.
    """
    rows = _responses(run_id, repeats, case_indexes)
    return rows.order_by("case_index", "trace_digest", "repeat__index").distinct("case_index", "trace_digest")


def responses_scored(scoring_id: int) -> QuerySet[ResponseRecord]:
    """Select every response whose answer a scoring is to score."""
    scoring = ForcedScoringRecord.objects.select_related("run__suite_version").get(pk=scoring_id)
    indexes = None if scoring.cases is None else np.flatnonzero(_selection(scoring, scoring.run.suite_version.n_cases))
    return _responses(scoring.run_id, scoring.repeats, None if indexes is None else indexes.tolist())


def cost_of(answers: QuerySet[ResponseRecord]) -> ForcedCost:
    """Count what scoring these answers costs."""
    counted = ResponseRecord.objects.filter(pk__in=answers.values("pk")).aggregate(
        answers=Count("pk"),
        tokens=Sum("n_tokens"),
        prompt_tokens=Sum("n_prompt_tokens"),
        uncounted=Count("pk", filter=Q(n_tokens=None)),
    )
    return ForcedCost(**{f"n_{name}": n or 0 for name, n in counted.items()})


def is_of_several_buckets(answers: QuerySet[ResponseRecord]) -> bool:
    """Tell whether several buckets gave these answers, which no number is taken over."""
    known = answers.exclude(engine_process=None).order_by()
    return known.values("engine_process__bucket").distinct().count() > 1


def next_answers(scoring_id: int) -> list[AnswerToForce]:
    """Return the next answers of a scoring, whole cases, after those that are stored; none when all are."""
    scoring = ForcedScoringRecord.objects.select_related("run__suite_version").get(pk=scoring_id)
    last = ForcedAnswerRecord.objects.filter(scoring=scoring_id).aggregate(last=Max("case_index"))["last"]
    first, n_cases = 0 if last is None else last + 1, scoring.run.suite_version.n_cases
    chosen = np.arange(n_cases) if scoring.cases is None else np.flatnonzero(_selection(scoring, n_cases))
    chosen = chosen[chosen >= first]
    for begin in range(0, len(chosen), CASES_AT_ONCE):
        part: list[int] = chosen[begin : begin + CASES_AT_ONCE].tolist()
        rows = list(
            answers_of(scoring.run_id, repeats=scoring.repeats, case_indexes=part).select_related("engine_process")
        )
        if rows:
            return _read(_whole_cases(rows), version_id=scoring.run.suite_version_id)
    return []


def give_tokens(answer: AnswerToForce, *, vocabulary_id: int | None) -> GivenTokens | None:
    """Return the tokens of an answer for an engine with this vocabulary; None if it is not stored.

    They are the answer's own ids where these are the engine's; else the ids that stand for its tokens' bytes, else its
    text. Of rollouts, which have ids and nothing else, it is these. None where nothing can be given: thinking that
    stands apart was written in tags that nobody stored, and a rollout may lack its prompt.
    """
    trace = answer.trace
    if trace is not None and answer.vocabulary_id is None and not answer.text:
        return _as_given(trace, vocabulary_id)
    if trace is not None and vocabulary_id is not None and answer.vocabulary_id is not None:
        if _is_same(answer.vocabulary_id, vocabulary_id):
            prompt = trace.prompt_token_ids
            prompt_ids = None if prompt is None else prompt.tolist()
            return GivenTokens(Tokens.SAME, prompt_ids, trace.token_ids.tolist(), "")
        theirs = stored_words(answer.vocabulary_id)
        ids = stored_words(vocabulary_id).find_ids(map(theirs.token_bytes, trace.token_ids.tolist()))
        if ids is not None:
            return GivenTokens(Tokens.BY_BYTES, None, ids, "")
    if answer.is_apart or not answer.text:
        return None
    return GivenTokens(Tokens.RETOKENISED, None, None, answer.text)


def _as_given(trace: TokenTrace, vocabulary_id: int | None) -> GivenTokens | None:
    """Return the ids of a log without a named tokenizer; None if the engine has no such ids."""
    if trace.prompt_token_ids is None:
        return None
    prompt, answer = trace.prompt_token_ids.tolist(), trace.token_ids.tolist()
    if vocabulary_id is not None and max((*prompt, *answer), default=0) >= len(stored_words(vocabulary_id)):
        return None
    return GivenTokens(Tokens.AS_GIVEN, prompt, answer, "")


def _is_same(vocabulary_id: int, other_id: int) -> bool:
    """Tell whether two stored vocabularies are equal: the same row, or the same bytes for every token."""
    if vocabulary_id == other_id:
        return True
    ours, theirs = stored_words(vocabulary_id), stored_words(other_id)
    return len(ours) == len(theirs) and ours.agrees_with(theirs)


def _selection(scoring: ForcedScoringRecord, n_cases: int) -> Any:
    return unpack_selection(bytes(scoring.cases or b""), n_cases)


def _responses(run_id: int, repeats: Collection[int], case_indexes: Collection[int] | None) -> QuerySet[ResponseRecord]:
    rows = ResponseRecord.objects.filter(repeat__run=run_id, repeat__index__in=repeats, error_code="")
    rows = rows.filter(Q(trace_block__isnull=False, n_tokens__gt=0) | Q(trace_block=None) & ~Q(text=""))
    return rows if case_indexes is None else rows.filter(case_index__in=case_indexes)


def _whole_cases(rows: Sequence[ResponseRecord]) -> list[ResponseRecord]:
    """The first rows, so many that a trace block is full, and all of each case."""
    if len(rows) <= ANSWERS_AT_ONCE:
        return list(rows)
    last = rows[ANSWERS_AT_ONCE].case_index
    return [row for row in rows if row.case_index < last] or [row for row in rows if row.case_index == last]


def _read(rows: Sequence[ResponseRecord], *, version_id: int) -> list[AnswerToForce]:
    cases = Case.objects.filter(suite_version=version_id, index__in={row.case_index for row in rows})
    contents = dict(cases.values_list("index", "content"))
    traces = _traces(rows)
    return [
        AnswerToForce(
            case_index=row.case_index,
            trace_digest=bytes(row.trace_digest or b""),
            repeat_id=row.repeat_id,
            messages=contents[row.case_index]["messages"],
            tools=contents[row.case_index].get("tools"),
            trace=traces.get(row.pk),
            text=row.text,
            is_apart=row.reasoning is not None,
            vocabulary_id=None if row.engine_process is None else row.engine_process.vocabulary_id,
        )
        for row in rows
    ]


def _traces(rows: Sequence[ResponseRecord]) -> dict[int, TokenTrace]:
    """The rows' traces with the prompts that they followed, by response."""
    block_ids = {row.trace_block_id for row in rows if row.trace_block_id is not None}
    blocks = {block.pk: bytes(block.data) for block in TraceBlock.objects.filter(pk__in=block_ids)}
    read: dict[int, TokenTrace] = {}
    for block_id, data in blocks.items():
        theirs = [row for row in rows if row.trace_block_id == block_id]
        slots = [row.trace_slot or 0 for row in theirs]
        read |= {row.pk: trace for row, trace in zip(theirs, read_traces(data, slots), strict=True)}
    return read
