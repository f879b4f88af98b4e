"""Two responses to one case side by side: where they parted, why, and the evidence. The trace diff page's read."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from evalboard.core import cause_words, fingerprint, live_answers
from evalboard.core.cause import Cause, Pair, decide
from evalboard.core.divergence import Divergence
from evalboard.core.fingerprint import Moved
from runs import pair_facts
from runs.models import Divergence as StoredDivergence
from runs.pair_noise import PairNoise
from runs.pair_parting import find_parting, vocabularies
from runs.selectors import pair_records
from runs.selectors.pair_records import Half, trace_of
from runs.selectors.pair_steps import Span, Steps, lay_out
from runs.selectors.prompt_pair import Side, prompt_parts
from runs.selectors.response import TokenCell, breaks_line, draw, finite, token_cell

NARROW = 0.25  # nats; a margin below is a position of interest
WINDOW = 150  # steps shown before and after the selected one


@dataclass(frozen=True, slots=True)
class PairSide:
    """One side. Digests are hexadecimal, "" where there is none; n_tokens is None where there is no trace."""

    run_id: int
    repeat: int
    n_repeats: int
    suite: str
    suite_version: int
    endpoint: str
    model_name: str
    fingerprint_id: int | None
    fingerprint_digest: str
    batch_class: str
    text: str
    finish_reason: str
    error_code: str
    error_detail: str
    is_vouched: bool
    is_logged: bool
    n_tokens: int | None
    trace_digest: str
    score: float | None
    reason: str
    scorer_digest: str


@dataclass(frozen=True, slots=True)
class Step:
    """What stands side by side. `key` is what `?at=` takes; a side without a token there has an empty tuple.

    Only the selected step's tokens come with their alternatives.
    """

    key: int
    baseline: tuple[TokenCell, ...]
    candidate: tuple[TokenCell, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One position of the charts, up to the parting: margins and gap in nats, None where not known."""

    key: int
    token_baseline: str
    token_candidate: str
    margin_baseline: float | None
    margin_candidate: float | None
    gap: float | None


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of provenance on both sides; what is unknown is None, and never equal to anything."""

    name: str
    baseline: Any
    candidate: Any

    @property
    def is_same(self) -> bool:
        return self.baseline == self.candidate and self.baseline is not None


@dataclass(frozen=True, slots=True)
class DrawnPart:
    side: Side
    tokens: tuple[str, ...]
    n_left_out: int


@dataclass(frozen=True, slots=True)
class Prompts:
    """Lengths in tokens, None where not known. are_same is None where nothing can tell.

    parts: token by token, where both sides' ids are known and differ.
    """

    n_baseline: int | None
    n_candidate: int | None
    are_same: bool | None
    parts: tuple[DrawnPart, ...]


@dataclass(frozen=True, slots=True)
class PairReport:
    """Everything the trace diff page shows. Positions are keys of steps.

    divergence: None where both traces are the same to the bit, or a response is missing. comparison: the id of one
    that holds this pair. steps: those around the selected one, of n_steps; parts_at: the first that differs. earlier,
    later: the nearest positions of interest (onset, flip, narrow margins up to it) around the selected one. moved: the
    fields of the two fingerprints that differ; n_settings_equal are known and the same.
    """

    case_id: str
    case_index: int
    tags: tuple[str, ...]
    messages: tuple[dict[str, Any], ...]
    target: Any
    baseline: PairSide
    candidate: PairSide
    divergence: Divergence | None
    cause: Cause
    words: str
    comparison: int | None
    onset: int | None
    parts_at: int | None
    n_steps: int
    last_key: int
    steps: tuple[Step, ...]
    selected: Step | None
    earlier: int | None
    later: int | None
    points: tuple[Point, ...]
    prompts: Prompts
    facts: tuple[Fact, ...]
    moved: tuple[Moved, ...]
    n_settings_equal: int

    @property
    def is_same_run(self) -> bool:
        return self.baseline.run_id == self.candidate.run_id

    @property
    def has_flip(self) -> bool:
        return self.divergence is not None and self.divergence.flip is not None


def trace_pair(
    baseline: int, candidate: int, *, case_id: str, repeats: tuple[int, int], at: int | None = None
) -> PairReport:
    """Two responses side by side around position `at`, which is the flip or what is nearest to one if not given.

    Raises NotFound where a run, case, repeat or response is not there.
    """
    one, other = pair_records.halves((baseline, candidate), case_id, repeats)
    is_missing = bool(one.response.error_code or other.response.error_code)
    parting = None if is_missing else find_parting(one.told, other.told)
    steps = Steps((), None)
    if one.trace is not None or other.trace is not None:
        steps = lay_out(trace_of(one), trace_of(other), vocabularies=vocabularies(one.told, other.told))
    cause = _decided(one, other, parting)
    points = _points(one, other, steps)
    onset = None if parting is None else parting.drift_onset
    parts_at = None if steps.parts is None else steps.spans[steps.parts].key
    marks = {point.key for point in points if _is_narrow(point)} | {at for at in (onset, parts_at) if at is not None}
    selected = _chosen(steps, at, onset, parts_at, points)
    key = steps.spans[selected].key if selected is not None else -1
    settings = fingerprint.difference(_manifest(one), _manifest(other))
    return PairReport(
        case_id=case_id,
        case_index=one.case.index,
        tags=tuple(one.case.tags),
        messages=tuple(one.case.content["messages"]),
        target=one.case.content["target"],
        baseline=_side(one),
        candidate=_side(other),
        divergence=parting,
        cause=cause,
        words=cause_words.words(cause),
        comparison=_comparison(one, other),
        onset=onset,
        parts_at=parts_at,
        n_steps=len(steps.spans),
        last_key=steps.spans[-1].key if steps.spans else 0,
        steps=_window(one, other, steps, selected),
        selected=None if selected is None else _whole_step(one, other, steps.spans[selected]),
        earlier=max((mark for mark in marks if mark < key), default=None),
        later=min((mark for mark in marks if mark > key), default=None),
        points=points,
        prompts=_prompts(one, other),
        facts=_facts(one, other),
        moved=settings.moved,
        n_settings_equal=len(settings.equal),
    )


def _comparison(one: Half, other: Half) -> int | None:
    """The newest comparison that lists this very pair."""
    repeats = one.repeat, other.repeat
    is_whole = Q(comparison__baseline_repeat=None, comparison__candidate_repeat=None)
    is_this = Q(comparison__baseline_repeat=repeats[0], comparison__candidate_repeat=repeats[1])
    rows = StoredDivergence.objects.filter(
        is_whole | is_this,
        comparison__baseline=one.run.pk,
        comparison__candidate=other.run.pk,
        case_index=one.case.index,
        repeat_baseline=repeats[0],
        repeat_candidate=repeats[1],
    )
    return rows.order_by("-comparison_id").values_list("comparison_id", flat=True).first()


def _decided(one: Half, other: Half, parting: Divergence | None) -> Cause:
    buckets = [half.bucket for half in (one, other) if half.bucket is not None]
    served = pair_facts.served_beside(one.run, other.run, buckets)
    sides = [
        pair_facts.side(
            pair_facts.asked_of(half.run),
            pair_facts.UNSERVED if half.bucket_id is None else served[half.bucket_id],
            _answered(half),
        )
        for half in (one, other)
    ]
    noise = PairNoise(one.run, other.run).between(one.bucket_id, other.bucket_id)
    return decide(Pair(sides[0], sides[1]), parting, noise)


def _answered(half: Half) -> pair_facts.Answered:
    response = half.response
    return pair_facts.Answered(
        text=response.text,
        error_code=response.error_code,
        finish_reason=response.finish_reason,
        prompt_digest=response.prompt_digest,
        n_prompt_tokens=response.n_prompt_tokens,
        score=half.score,
        scorer_digest=half.scorer_digest,
    )


def _manifest(half: Half) -> dict[str, Any]:
    is_known = half.bucket is not None and pair_facts.fingerprint_of(half.bucket) is not None
    manifest: dict[str, Any] = half.bucket.fingerprint.manifest if is_known else {}
    return manifest


def _side(half: Half) -> PairSide:
    response, bucket = half.response, half.bucket
    return PairSide(
        run_id=half.run.pk,
        repeat=half.repeat,
        n_repeats=half.n_repeats,
        suite=half.run.suite_version.suite.slug,
        suite_version=half.run.suite_version.number,
        endpoint=half.run.endpoint.slug,
        model_name=bucket.model.name if bucket else half.run.endpoint.model_name,
        fingerprint_id=bucket.fingerprint_id if bucket else None,
        fingerprint_digest=bucket.fingerprint.digest if bucket else "",
        batch_class=bucket.batch_class if bucket else "",
        text=response.text,
        finish_reason=response.finish_reason,
        error_code=response.error_code,
        error_detail=response.error_detail,
        is_vouched=response.is_vouched,
        is_logged=half.is_logged,
        n_tokens=None if half.trace is None else len(half.trace),
        trace_digest=bytes(response.trace_digest).hex() if response.trace_digest else "",
        score=half.score,
        reason=half.reason,
        scorer_digest=half.scorer_digest,
    )


def _points(one: Half, other: Half, steps: Steps) -> tuple[Point, ...]:
    """The charts' positions: all that agree, and the flip. Past it nothing is drawn."""
    if one.trace is None or other.trace is None:
        return ()
    spans = steps.spans if steps.parts is None else steps.spans[: steps.parts + 1]
    ends = [(span, _last(span.baseline), _last(span.candidate)) for span in spans]
    names = [_names(one, [here for _, here, _ in ends]), _names(other, [there for _, _, there in ends])]
    margins = [half.trace.margins().tolist() for half in (one, other) if half.trace is not None]
    return tuple(
        Point(span.key, name, name_too, _known(margins[0], here), _known(margins[1], there), span.gap)
        for (span, here, there), name, name_too in zip(ends, *names, strict=True)
    )


def _last(positions: range) -> int | None:
    return positions[-1] if positions else None


def _names(half: Half, positions: list[int | None]) -> list[str]:
    """Drawn tokens, "" where the side has none. Each id is drawn once: a text repeats most of its tokens."""
    ids = trace_of(half).token_ids.tolist()
    used = sorted({ids[position] for position in positions if position is not None})
    drawn = dict(zip(used, draw(used, half.words), strict=True))
    return ["" if position is None else drawn[ids[position]] for position in positions]


def _known(values: list[float], position: int | None) -> float | None:
    return None if position is None else finite(values[position])


def _is_narrow(point: Point) -> bool:
    known = [margin for margin in (point.margin_baseline, point.margin_candidate) if margin is not None]
    return min(known, default=NARROW) < NARROW


def _chosen(
    steps: Steps, at: int | None, onset: int | None, parts_at: int | None, points: tuple[Point, ...]
) -> int | None:
    """The step asked for, or where a reader looks first: the parting, the onset, the narrowest margin."""
    if not steps.spans:
        return None
    if at is not None and at <= steps.spans[-1].key:
        return steps.find(at)
    if parts_at is not None or onset is not None:
        return steps.find(parts_at if parts_at is not None else onset or 0)
    known = [point for point in points if point.margin_baseline is not None]
    return steps.find(min(known, key=lambda point: (point.margin_baseline, point.key)).key) if known else 0


def _window(one: Half, other: Half, steps: Steps, selected: int | None) -> tuple[Step, ...]:
    if selected is None:
        return ()
    shown = steps.spans[max(selected - WINDOW, 0) : selected + WINDOW + 1]
    cells = _cells(one, [span.baseline for span in shown])
    cells_too = _cells(other, [span.candidate for span in shown])
    return tuple(Step(span.key, here, there) for span, here, there in zip(shown, cells, cells_too, strict=True))


def _cells(half: Half, shown: list[range]) -> list[tuple[TokenCell, ...]]:
    """The tokens of each step without their alternatives, drawn at once."""
    trace = trace_of(half)
    positions = [position for places in shown for position in places]
    ids, logprobs = trace.token_ids[positions].tolist(), trace.logprobs[positions].tolist()
    margins = trace.margins()[positions].tolist()
    drawn = draw(ids, half.words)
    cells = iter(
        TokenCell(position, token_id, token, logprob, finite(margin), breaks_line(token_id, half.words), ())
        for position, token_id, token, logprob, margin in zip(positions, ids, drawn, logprobs, margins, strict=True)
    )
    return [tuple(next(cells) for _ in places) for places in shown]


def _whole_step(one: Half, other: Half, span: Span) -> Step:
    return Step(span.key, _whole_cells(one, span.baseline), _whole_cells(other, span.candidate))


def _whole_cells(half: Half, positions: range) -> tuple[TokenCell, ...]:
    trace = trace_of(half)
    margins = trace.margins()
    return tuple(token_cell(trace, position, float(margins[position]), half.words) for position in positions)


def _prompts(one: Half, other: Half) -> Prompts:
    ids = [None if half.trace is None else half.trace.prompt_token_ids for half in (one, other)]
    digests = one.response.prompt_digest, other.response.prompt_digest
    are_same = None if None in digests else bytes(digests[0] or b"") == bytes(digests[1] or b"")
    parts: tuple[DrawnPart, ...] = ()
    is_one_vocabulary = vocabularies(one.told, other.told) is None
    if ids[0] is not None and ids[1] is not None and are_same is not True and is_one_vocabulary:
        found = prompt_parts(ids[0].tolist(), ids[1].tolist())
        parts = tuple(DrawnPart(part.side, tuple(draw(part.ids, one.words)), part.n_left_out) for part in found)
        are_same = not found
    return Prompts(one.response.n_prompt_tokens, other.response.n_prompt_tokens, are_same, parts)


def _facts(one: Half, other: Half) -> tuple[Fact, ...]:
    """Differing ones first, each kind in the order in which it explains something."""
    ours, theirs = _known_of(one), _known_of(other)
    facts = [Fact(name, ours[name], theirs[name]) for name in ours]
    return tuple(sorted(facts, key=lambda fact: fact.is_same))


def _known_of(half: Half) -> dict[str, Any]:
    response, bucket, process = half.response, half.bucket, half.response.engine_process
    batch = (response.batch_min, response.batch_max)
    size = None if None in batch else f"{batch[0]}" if batch[0] == batch[1] else f"{batch[0]}–{batch[1]}"
    recorded: datetime = response.recorded_at
    return {
        "model": bucket.model.name if bucket else None,
        "model_digest": bucket.model.digest if bucket else None,
        "fingerprint": pair_facts.fingerprint_of(bucket) if bucket else None,
        "batch_class": bucket.batch_class if bucket else None,
        "batch_size_seen": size,
        "profile": str(half.run.profile),
        "seed_sent": response.seed_sent,
        "prompt_digest": bytes(response.prompt_digest).hex() if response.prompt_digest else None,
        "n_prompt_tokens": response.n_prompt_tokens,
        "n_cached_tokens": response.n_cached_tokens,
        "n_preemptions": response.n_preemptions,
        "finish_reason": response.finish_reason or None,
        "n_tokens": response.n_tokens,
        "worker": process.worker.name if process else None,
        "engine_process": str(process.pk) if process else None,
        "attempt": response.attempt,
        "marks": ", ".join(live_answers.names_of(response.marks)) or "none",
        "recorded": recorded,
        "request_id": response.request_id or None,
    }
