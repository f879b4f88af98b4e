"""Read one response: its text with its tokens, provenance and score."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import BinaryField, Exists, F, FilteredRelation, Func, OuterRef, Q

from evalboard.compared.tokens import draw, token_at, tokens_at
from evalboard.contract import response as contract
from evalboard.contract.base import finite
from evalboard.contract.parts import ResponseError
from evalboard.contract.trace import TokenAtPosition, Trace
from evalboard.core.errors import NotFound
from evalboard.core.stats import list_mark_names
from evalboard.core.trace import (
    TokenTrace,
    Vocabulary,
    lowest_of_stretches,
    read_trace,
    unpack_chances,
)
from evalboard.wording.clock import describe_clock, describe_worker_clock
from runs import acts
from runs.models import (
    Case,
    DeletionRecord,
    ForcedScoringRecord,
    RepeatRecord,
    ResponseRecord,
    RunRecord,
    TraceBlock,
)
from runs.pairs import pair_facts, stored_words
from runs.pairs.scored_answers import LentWords, lend_words
from runs.run.read_deletions import list_deletions
from runs.store import read_scored, require_row

PROMPT_TOKENS = 4000  # of a prompt that a page shows
WINDOW = 400  # positions on a page: a browser takes seconds for those of a long trace
CHART_STEMS = 300  # of a chart of margins
# What a response is loaded with, to say who served it, and what of that is large and says nothing of a response.
SERVED_BY = ("engine_process__bucket__model", "engine_process__bucket__fingerprint", "engine_process__worker")
NOT_READ = (
    "engine_process__manifest",
    "engine_process__pins",
    "engine_process__self_checks",
    "engine_process__worker__hardware",
    "engine_process__worker__versions",
)


@dataclass(frozen=True, slots=True)
class ScoreCell:
    scorer_digest: str
    is_own: bool
    score: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class TraceWindow:
    """The part of a trace that a page shows: `tokens` around the `selected` one, of n positions.

    The selected one alone has its alternatives.
    margins: (position, nats) where they are known, of a long trace the narrowest of each stretch.
    """

    n: int
    tokens: tuple[TokenAtPosition, ...]
    selected: TokenAtPosition
    narrowest: TokenAtPosition | None
    margins: tuple[tuple[int, float], ...]

    @property
    def is_thinned(self) -> bool:
        """Return whether the chart shows only some of the margins."""
        return self.n > CHART_STEMS


@dataclass(frozen=True, slots=True)
class ResponsePage:
    """A response's page. `scores` by each scorer, the suite's own first.

    prompt_tokens: the first of the tokens that the model read, of `n_prompt_tokens`; none where they are not known.
    trace: None without tokens. lent: the words that its tokens are shown by, where those of its own are not known.
    """

    run_id: int
    suite: str
    response: contract.Response
    n_repeats: int
    messages: tuple[dict[str, Any], ...]
    target: Any
    tags: tuple[str, ...]
    is_logged: bool
    is_over: bool
    can_replay: bool
    scores: tuple[ScoreCell, ...]
    prompt_tokens: tuple[str, ...]
    trace: TraceWindow | None
    lent: LentWords | None
    same_trace_repeats: tuple[int, ...]
    previous_case_id: str | None
    next_case_id: str | None
    deletions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _StoredResponse:
    """A response with related records. siblings: (repeat, trace digest, packed flip chance).

    is_scored_elsewhere: of its run answers were scored on other stacks. has_deletion: something of it was deleted.
    """

    run: RunRecord
    case: Case
    response: ResponseRecord
    siblings: tuple[tuple[int, bytes | None, bytes | None], ...]
    is_scored_elsewhere: bool
    has_deletion: bool


def response_page(run_id: int, *, repeat: int, case_id: str, at: int | None = None) -> ResponsePage:
    """Read a response with its tokens around position `at`, which is the narrowest margin's if not given.

    Raises NotFound where the run, repeat, case or response is not there.
    """
    stored = _find(run_id, repeat, case_id)
    response, case = stored.response, stored.case
    trace = _trace(response)
    neighbours = dict(
        Case.objects.filter(
            suite_version=case.suite_version_id, index__in=(case.index - 1, case.index + 1)
        ).values_list("index", "case_id")
    )
    is_traced = response.trace_digest is not None and response.trace_block_id is not None
    own_digest = bytes(response.trace_digest or b"") if is_traced else None
    scores = _scores(stored)
    own = next((cell for cell in scores if cell.is_own), None)
    own_words = words_of(response)
    may_lend = trace is not None and own_words is None and stored.is_scored_elsewhere
    lent = lend_words(run_id, response) if may_lend else None
    prompt = None if trace is None else trace.prompt_token_ids
    return ResponsePage(
        run_id=run_id,
        suite=stored.run.suite_version.suite.slug,
        response=response_row(
            response,
            case_id=case_id,
            scored=(own.score, own.reason) if own else (None, ""),
            flip_chance=_flip_chance(stored),
            n_cases=stored.run.suite_version.n_cases,
        ),
        n_repeats=len(stored.siblings),
        messages=tuple(case.content["messages"]),
        target=case.content["target"],
        tags=tuple(case.tags),
        is_logged=stored.run.source_id is not None,
        is_over=stored.run.is_terminal,
        can_replay=acts.refusal("replay", stored.run) is None,
        scores=scores,
        prompt_tokens=() if prompt is None or own_words is None else tuple(own_words.draw(prompt[:PROMPT_TOKENS])),
        trace=None if trace is None or not len(trace) else window_of(trace, lent.words if lent else own_words, at),
        lent=lent,
        same_trace_repeats=tuple(
            index for index, other, _ in stored.siblings if index != repeat and own_digest and other == own_digest
        ),
        previous_case_id=neighbours.get(case.index - 1),
        next_case_id=neighbours.get(case.index + 1),
        deletions=tuple(list_deletions(stored.run, case_id)) if stored.has_deletion else (),
    )


def response_row(
    response: ResponseRecord, *, case_id: str, scored: tuple[float | None, str], flip_chance: float | None, n_cases: int
) -> contract.Response:
    """Return a response loaded with repeat, process, bucket and worker. scored: score and reason."""
    return contract.Response.from_record(
        response,
        **response_content(response, scored[1]),
        case=case_id,
        score=scored[0],
        flip_chance=flip_chance,
        marks=list_mark_names(response.marks),
        trace_reason=response.trace_reason or None,
        provenance=provenance_of(response),
        place=response.repeat.index * n_cases + response.case_index,
    )


def response_content(response: ResponseRecord, reason: str) -> dict[str, Any]:
    """Return the fields of `ResponseContent` that are no columns. reason: its scorer's."""
    error = ResponseError(code=response.error_code, detail=response.error_detail) if response.error_code else None
    return {
        "repeat": response.repeat.index,
        "finish_reason": response.finish_reason or None,
        "ending": response.ending or None,
        "error": error,
        "reason": reason or None,
        "trace_digest": bytes(response.trace_digest).hex() if response.trace_digest else None,
    }


def _flip_chance(stored: _StoredResponse) -> float | None:
    """The case's, predicted from the run's first repeat."""
    packed = next((chance for _, _, chance in stored.siblings if chance is not None), None)
    return None if packed is None else finite(float(unpack_chances(packed, 1)[0]))


def stored_trace(run_id: int, *, repeat: int, case_id: str) -> tuple[TokenTrace, Vocabulary | None]:
    """Return the trace of a response and its words. Raises NotFound, also where the response has none."""
    response = _find(run_id, repeat, case_id).response
    trace = _trace(response)
    if trace is None:
        why = f"is missing ({response.error_code})" if response.error_code else "was read from a log without tokens"
        raise NotFound(f"This response {why}, so it has no trace.")
    return trace, words_of(response)


def show_trace(
    trace: TokenTrace, words: Vocabulary | None, *, start: int | None = None, limit: int | None = None
) -> Trace:
    """Return up to `limit` positions of a trace from `start` on; by default all.

    Non-finite logprobs are null.
    """
    texts = functools.cache(functools.partial(_texts, words=words))  # thousands of tokens, few different ones

    def token(token_id: int, logprob: float) -> dict[str, Any]:
        return {"token_id": token_id, **texts(token_id), "logprob": finite(logprob)}

    first = min(start or 0, len(trace))
    shown = slice(first, len(trace) if limit is None else min(first + limit, len(trace)))
    chosen = zip(trace.token_ids[shown].tolist(), trace.logprobs[shown].tolist(), strict=True)
    positions = tuple(
        token(*each)
        | {"alternatives": tuple(token(other.token_id, other.logprob) for other in trace.alternatives(place))}
        for place, each in enumerate(chosen, start=first)
    )
    # One by one would take half as long again.
    return Trace.model_validate({"start": first, "length": len(trace), "positions": positions})


def _texts(token_id: int, words: Vocabulary | None) -> dict[str, str | None]:
    """Return a token's exact text (None if its bytes are not valid text, or unknown) and a readable form."""
    data = words.token_bytes(token_id) if words else None
    try:
        exact = None if data is None else data.decode()
    except UnicodeDecodeError:
        exact = None
    return {"token": exact, "drawn": draw([token_id], words)[0]}


def _find(run_id: int, repeat: int, case_id: str) -> _StoredResponse:
    concerning = Q(run=run_id) | Q(run=None, suite_version=OuterRef("suite_version"))
    known = RunRecord.objects.annotate(  # most have neither, and their pages look no further
        is_scored_elsewhere=Exists(ForcedScoringRecord.objects.filter(run=OuterRef("pk"))),
        has_deletion=Exists(DeletionRecord.objects.filter(concerning)),
    )
    run = require_row(known.select_related("suite_version__suite").filter(pk=run_id), f"There is no run {run_id}.")
    case = require_row(
        Case.objects.filter(suite_version=run.suite_version_id, case_id=case_id),
        f"The suite of run {run_id} has no case {case_id}.",
    )
    response = require_row(
        ResponseRecord.objects.filter(repeat__run=run, repeat__index=repeat, case_index=case.index)
        .select_related("repeat", *SERVED_BY)
        .defer(*NOT_READ),
        f"Run {run_id} has no response to case {case_id} in repeat {repeat} yet.",
    )
    beside = FilteredRelation("responses", condition=Q(responses__case_index=case.index))
    decodes_it = Q(cases=None) | Q(beside__isnull=False)  # a targeted repeat only where it was to
    repeats = RepeatRecord.objects.filter(run=run).annotate(beside=beside).filter(decodes_it).order_by("index")
    own_chance = Func(F("columns__flip_chances"), 4 * case.index + 1, 4, function="substr", output_field=BinaryField())
    rows = repeats.values_list("index", "beside__trace_digest", own_chance)
    siblings = tuple((index, _bytes(digest), _bytes(chances)) for index, digest, chances in rows)
    return _StoredResponse(run, case, response, siblings, run.is_scored_elsewhere, run.has_deletion)


def _bytes(packed: memoryview | bytes | None) -> bytes | None:
    return None if packed is None else bytes(packed)


def _trace(response: ResponseRecord) -> TokenTrace | None:
    """Return the trace to show, measured or not."""
    if response.unmeasured_trace is not None:
        return read_trace(bytes(response.unmeasured_trace), 0)
    if response.trace_block_id is None or response.trace_slot is None:
        return None
    data = TraceBlock.objects.values_list("data", flat=True).get(pk=response.trace_block_id)
    trace: TokenTrace = read_trace(bytes(data), response.trace_slot)
    return trace


def words_of(response: ResponseRecord) -> Vocabulary | None:
    """Return the vocabulary of the tokenizer that decoded a response, None if not stored."""
    process = response.engine_process
    return None if process is None or process.vocabulary_id is None else stored_words(process.vocabulary_id)


def window_of(trace: TokenTrace, words: Vocabulary | None, at: int | None) -> TraceWindow:
    """Return the window of a non-empty trace around position `at`, or around its smallest margin."""
    margins = trace.margins()
    closest = lowest_of_stretches(margins, 1).tolist()
    selected = at if at is not None and at < len(trace) else next(iter(closest), 0)
    first = max(min(selected - WINDOW // 2, len(trace) - WINDOW), 0)
    stems = lowest_of_stretches(margins, CHART_STEMS)
    return TraceWindow(
        n=len(trace),
        tokens=tokens_at(trace, range(first, min(first + WINDOW, len(trace))), words),
        selected=token_at(trace, selected, float(margins[selected]), words),
        narrowest=next(iter(tokens_at(trace, closest, words)), None),
        margins=tuple(zip(stems.tolist(), margins[stems].tolist(), strict=True)),
    )


def _scores(stored: _StoredResponse) -> tuple[ScoreCell, ...]:
    """The score under each scorer, the suite's own first."""
    place = (stored.response.repeat_id, stored.case.index)
    rows = read_scored([place], n_cases=stored.run.suite_version.n_cases).get(place, ())
    own_id = stored.run.suite_version.scorer_id
    cells = [ScoreCell(row.scorer_digest, row.scorer_id == own_id, row.score, row.reason) for row in rows]
    return tuple(sorted(cells, key=lambda cell: not cell.is_own))


def provenance_of(response: ResponseRecord) -> dict[str, Any]:
    """Return who answered and how, by field; None if unknown."""
    process = response.engine_process
    bucket = process.bucket if process else None
    return {
        "model": bucket.model.name if bucket else None,
        "model_digest": bucket.model.digest if bucket else None,
        "fingerprint": pair_facts.fingerprint_of(bucket) if bucket else None,
        "batch_class": bucket.batch_class if bucket else None,
        "batch_min": response.batch_min,
        "batch_max": response.batch_max,
        "engine_process": str(process.pk) if process else None,
        "worker": process.worker.name if process else None,
        "attempt": response.attempt,
        "seed_sent": response.seed_sent,
        "request_id": response.request_id or None,
        "marks": ", ".join(list_mark_names(response.marks)) or "none",
        "prompt_digest": bytes(response.prompt_digest).hex() if response.prompt_digest else None,
        "n_prompt_tokens": response.n_prompt_tokens,
        "n_cached_tokens": response.n_cached_tokens,
        "n_tokens": response.n_tokens,
        "n_preemptions": response.n_preemptions,
        "queued_seconds": response.queued_seconds,
        "prefill_seconds": response.prefill_seconds,
        "decode_seconds": response.decode_seconds,
        **(call_facts(response.call) if response.call is not None else {}),
    }


def call_facts(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a call to an external server went, by field, from a stored `CallFacts`; None if unknown."""
    ahead, worker_ahead = call.get("clock_ahead"), call.get("worker_ahead")
    return {
        "called_at": call["started_at"],
        "answered_at": call["ended_at"],
        "tries": call["n_tries"],
        "http_status": call["status"],
        "seed_echoed": call["seed_echoed"],
        "system_fingerprint": call["system_fingerprint"] or None,
        "backend": call["backend"] or None,
        "backend_named_by": call["backend_from"] or None,
        "model_reported": call["model_reported"] or None,
        "request_id_in_header": call["request_id"] or None,
        "settings_not_sent": ", ".join(call["left_out"]) or "none",
        "server_clock": describe_clock((ahead[0], ahead[1])) if ahead else None,
        "worker_clock": None if worker_ahead is None else describe_worker_clock(worker_ahead),
    }
