"""One response: its text beside its tokens, its provenance and its score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import FilteredRelation, Q

from evalboard.core import codec, columns, live_answers
from evalboard.core.errors import NotFound
from evalboard.core.trace import Trace
from evalboard.core.vocabulary import Vocabulary
from runs import pair_facts
from runs.models import Case, Repeat, RepeatScore, Response, Run, TraceBlock
from runs.pair_parting import stored_words


@dataclass(frozen=True, slots=True)
class AlternativeCell:
    token_id: int
    token: str
    logprob: float
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class TokenCell:
    """One position of a trace. `token` is drawn text: whitespace and control characters visible.

    `margin` is in nats, None where fewer than two alternatives are known.
    """

    position: int
    token_id: int
    token: str
    logprob: float
    margin: float | None
    breaks_line: bool
    alternatives: tuple[AlternativeCell, ...]


@dataclass(frozen=True, slots=True)
class ScoreCell:
    scorer_digest: str
    is_own: bool
    score: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class ResponseReport:
    run_id: int
    repeat: int
    n_repeats: int
    case_id: str
    case_index: int
    messages: tuple[dict[str, Any], ...]
    target: Any
    tags: tuple[str, ...]
    text: str
    finish_reason: str
    error_code: str
    error_detail: str
    is_vouched: bool
    is_logged: bool
    marks: tuple[str, ...]
    scores: tuple[ScoreCell, ...]
    tokens: tuple[TokenCell, ...]
    provenance: tuple[Field, ...]
    trace_digest: str
    same_trace_repeats: tuple[int, ...]
    previous_case_id: str | None
    next_case_id: str | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class _Found:
    """One response with what its page needs of the records around it."""

    run: Run
    case: Case
    response: Response
    siblings: tuple[tuple[int, bytes | None], ...]


def response_report(run_id: int, *, repeat: int, case_id: str) -> ResponseReport:
    """Raises NotFound where the run, repeat, case or response is not there."""
    found = _find(run_id, repeat, case_id)
    response, case = found.response, found.case
    trace = _trace(response)
    neighbours = dict(
        Case.objects.filter(
            suite_version=case.suite_version_id, index__in=(case.index - 1, case.index + 1)
        ).values_list("index", "case_id")
    )
    own_digest = None if response.trace_digest is None or trace is None else bytes(response.trace_digest)
    return ResponseReport(
        run_id=run_id,
        repeat=repeat,
        n_repeats=len(found.siblings),
        case_id=case_id,
        case_index=case.index,
        messages=tuple(case.content["messages"]),
        target=case.content["target"],
        tags=tuple(case.tags),
        text=response.text,
        finish_reason=response.finish_reason,
        error_code=response.error_code,
        error_detail=response.error_detail,
        is_vouched=response.is_vouched,
        is_logged=found.run.source_id is not None,
        marks=live_answers.names_of(response.marks),
        scores=_scores(found),
        tokens=() if trace is None else _tokens(trace, words_of(response)),
        provenance=provenance_of(response),
        trace_digest=own_digest.hex() if own_digest else "",
        same_trace_repeats=tuple(
            index for index, other in found.siblings if index != repeat and own_digest and other == own_digest
        ),
        previous_case_id=neighbours.get(case.index - 1),
        next_case_id=neighbours.get(case.index + 1),
        recorded_at=response.recorded_at,
    )


def stored_trace(run_id: int, *, repeat: int, case_id: str) -> tuple[Trace, Vocabulary | None]:
    """The trace of a response and its words. Raises NotFound, also where the response is missing and has none."""
    response = _find(run_id, repeat, case_id).response
    trace = _trace(response)
    if trace is None:
        why = f"is missing ({response.error_code})" if response.error_code else "was read from a log without tokens"
        raise NotFound(f"This response {why}, so it has no trace.")
    return trace, words_of(response)


def trace_positions(run_id: int, *, repeat: int, case_id: str) -> list[dict[str, Any]]:
    """The `positions` of `GET …/trace/`; non-finite logprobs are null. Raises NotFound."""
    trace, words = stored_trace(run_id, repeat=repeat, case_id=case_id)
    return [
        _position(token, logprob, words)
        | {"alternatives": [_position(other.token_id, other.logprob, words) for other in trace.alternatives(place)]}
        for place, (token, logprob) in enumerate(zip(trace.token_ids.tolist(), trace.logprobs.tolist(), strict=True))
    ]


def _position(token_id: int, logprob: float, words: Vocabulary | None) -> dict[str, Any]:
    """`token` is the exact text, None where the token's bytes are no text by themselves or not known."""
    data = words.token_bytes(token_id) if words else None
    try:
        exact = None if data is None else data.decode()
    except UnicodeDecodeError:
        exact = None
    drawn = draw([token_id], words)[0]
    return {"token_id": token_id, "token": exact, "drawn": drawn, "logprob": finite(logprob)}


def _find(run_id: int, repeat: int, case_id: str) -> _Found:
    run = Run.objects.select_related("suite_version").filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    case = Case.objects.filter(suite_version=run.suite_version_id, case_id=case_id).first()
    if case is None:
        raise NotFound(f"The suite of run {run_id} has no case {case_id}.")
    response = (
        Response.objects.filter(repeat__run=run, repeat__index=repeat, case_index=case.index)
        .select_related("repeat", "engine_process__bucket__model", "engine_process__bucket__fingerprint")
        .select_related("engine_process__worker")
        .first()
    )
    if response is None:
        raise NotFound(f"Run {run_id} has no response to case {case_id} in repeat {repeat} yet.")
    beside = FilteredRelation("responses", condition=Q(responses__case_index=case.index))
    siblings = Repeat.objects.filter(run=run).annotate(beside=beside).order_by("index")
    digests = siblings.values_list("index", "beside__trace_digest")
    return _Found(run, case, response, tuple((index, bytes(d) if d is not None else None) for index, d in digests))


def _trace(response: Response) -> Trace | None:
    if response.trace_block_id is None or response.trace_slot is None:
        return None
    data = TraceBlock.objects.values_list("data", flat=True).get(pk=response.trace_block_id)
    trace: Trace = codec.read_trace(bytes(data), response.trace_slot)
    return trace


def words_of(response: Response) -> Vocabulary | None:
    """The words of the tokenizer that a response was decoded with, None where nobody stored it."""
    process = response.engine_process
    return None if process is None or process.vocabulary_id is None else stored_words(process.vocabulary_id)


def _tokens(trace: Trace, words: Vocabulary | None) -> tuple[TokenCell, ...]:
    margins = trace.margins().tolist()
    return tuple(token_cell(trace, position, margins[position], words) for position in range(len(trace)))


def token_cell(trace: Trace, position: int, margin: float, words: Vocabulary | None) -> TokenCell:
    """One position with its alternatives; `margin` as `trace.margins()` has it."""
    token_id = int(trace.token_ids[position])
    alternatives = trace.alternatives(position)
    drawn = draw([token_id, *(other.token_id for other in alternatives)], words)
    return TokenCell(
        position=position,
        token_id=token_id,
        token=drawn[0],
        logprob=float(trace.logprobs[position]),
        margin=margin if math.isfinite(margin) else None,
        breaks_line=breaks_line(token_id, words),
        alternatives=tuple(
            AlternativeCell(other.token_id, token, other.logprob, other.token_id == token_id)
            for other, token in zip(alternatives, drawn[1:], strict=True)
        ),
    )


def breaks_line(token_id: int, words: Vocabulary | None) -> bool:
    return b"\n" in ((words and words.token_bytes(token_id)) or b"")


def draw(token_ids: Sequence[int], words: Vocabulary | None) -> list[str]:
    """Tokens as `core.vocabulary` draws them, by their ids where nobody stored the words."""
    return [f"⟨token {token}⟩" for token in token_ids] if words is None else words.draw(token_ids)


def _scores(found: _Found) -> tuple[ScoreCell, ...]:
    """The score under each scorer, the suite's own first."""
    own_id = found.run.suite_version.scorer_id
    rows = RepeatScore.objects.filter(repeat=found.response.repeat_id).select_related("scorer").order_by("id")
    cells = []
    for row in rows:
        score = float(columns.unpack_scores(bytes(row.scores))[found.case.index])
        reason = columns.unpack_reasons(bytes(row.reasons))[found.case.index] or ""
        cells.append(ScoreCell(row.scorer.digest, row.scorer_id == own_id, finite(score), reason))
    return tuple(sorted(cells, key=lambda cell: not cell.is_own))


def provenance_of(response: Response) -> tuple[Field, ...]:
    """Who served the response and how, by name; what is unknown is None."""
    process = response.engine_process
    bucket = process.bucket if process else None
    return (
        Field("model", bucket.model.name if bucket else None),
        Field("model_digest", bucket.model.digest if bucket else None),
        Field("fingerprint", pair_facts.fingerprint_of(bucket) if bucket else None),
        Field("batch_class", bucket.batch_class if bucket else None),
        Field("batch_min", response.batch_min),
        Field("batch_max", response.batch_max),
        Field("engine_process", str(process.pk) if process else None),
        Field("worker", process.worker.name if process else None),
        Field("attempt", response.attempt),
        Field("seed_sent", response.seed_sent),
        Field("request_id", response.request_id or None),
        Field("marks", ", ".join(live_answers.names_of(response.marks)) or "none"),
        Field("prompt_digest", bytes(response.prompt_digest).hex() if response.prompt_digest else None),
        Field("n_prompt_tokens", response.n_prompt_tokens),
        Field("n_cached_tokens", response.n_cached_tokens),
        Field("n_tokens", response.n_tokens),
        Field("n_preemptions", response.n_preemptions),
        Field("queued_seconds", response.queued_seconds),
        Field("prefill_seconds", response.prefill_seconds),
        Field("decode_seconds", response.decode_seconds),
    )


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
