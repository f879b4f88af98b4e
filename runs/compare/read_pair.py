"""Read two responses to one case for the trace diff: the divergence, its cause, and the evidence."""

import math
from dataclasses import fields, replace
from typing import Any

from django.db.models import Q

from evalboard.compared.pair_layout import find_prompt_parts, show_pair
from evalboard.compared.report import to_points, write_change
from evalboard.compared.tokens import draw
from evalboard.contract import pair as contract
from evalboard.contract.compare import ChangedMessage, Moved
from evalboard.contract.parts import FingerprintNamed
from evalboard.contract.treatments import Terms
from evalboard.core import scoring
from evalboard.core.compare import (
    UNKNOWN_SERVING,
    Cause,
    Divergence,
    Pair,
    PromptOfCase,
    ResponseFacts,
    compare_prompts,
    find_cause,
    find_parting,
    make_response,
)
from evalboard.core.profile import compare_manifests
from evalboard.core.stats import list_mark_names
from evalboard.wording.cause import explain_at_flip, explain_cause
from evalboard.wording.replay import replay_command
from runs import acts
from runs.compare.inputs import MODEL_TERMS, name_backends
from runs.compare.read import pair_path
from runs.compare.read_leak import find_leak
from runs.compare.read_pair_records import Half, load_halves
from runs.models import BucketRecord, DivergenceRecord, RunRecord
from runs.pairs import WORDS, measure_pair_noise, pair_facts
from runs.pairs.pair_facts import read_names
from runs.pairs.scored_answers import find_scored, has_forced, read_scored
from runs.run import response_content


def trace_pair(
    baseline: int,
    candidate: int,
    *,
    case_id: str,
    repeats: tuple[int, int],
    at: int | None = None,
    terms: Terms = MODEL_TERMS,
) -> contract.TracePair:
    """Read two responses around position `at`, which is the flip or what is nearest to one if not given.

    case_id: the baseline's. terms: of the comparison that they are a pair of. Raises NotFound where a run, case,
    repeat or response is not there.
    """
    one, other = load_halves((baseline, candidate), case_id, repeats, terms)
    is_missing = bool(one.response.error_code or other.response.error_code)
    parting = None if is_missing else find_parting(one.traced_text, other.traced_text, WORDS)
    cause = _find_cause(one, other, parting, terms)
    parted = parting or Divergence()
    vocabularies = WORDS.of(one.traced_text, other.traced_text)
    shown = show_pair((one, other), parting, vocabularies=vocabularies, near=cause.evidence.get("near"), at=at)
    settings = compare_manifests(_manifest(one), _manifest(other))
    is_scored = has_forced(one.run.pk, other.run.pk)
    at_flip = _find_at_flip(one, other, parted) if is_scored else ()
    return contract.TracePair.from_record(
        parted,
        **shown,
        case=case_id,
        baseline=_side(one),
        candidate=_side(other),
        cause=cause.code,
        numeric=cause.numeric,
        text=explain_cause(cause, replay=_replay(one, other), backends=_name_backends(one, other)),
        evidence=cause.evidence,
        provenance=_provenance(one, other),
        moved=tuple(
            Moved(field=each.field, baseline=each.baseline, candidate=each.candidate) for each in settings.moved
        ),
        url=pair_path((baseline, candidate), case_id, repeats, shown["at"], terms),
        leak=find_leak((one, other), parted) if cause.code == "leak" else None,
        at_flip=at_flip,
        at_flip_text=explain_at_flip(at_flip, near=cause.evidence.get("near")),
        changed=_describe_change(one, other) if terms.is_prompt else (),
        suite=one.run.suite_version.suite.slug,
        treatment=terms.treatment,
        pair_by=terms.pair_by,
        comparison=_comparison(one, other, terms),
        has_forced=is_scored,
        messages=tuple(one.case.content["messages"]),
        target=one.case.content["target"],
        prompts=_prompts(one, other),
        n_settings_equal=len(settings.equal),
    )


def _find_at_flip(one: Half, other: Half, parted: Divergence) -> tuple[contract.ForcedFlip, ...]:
    """Return each stack's choice there for the same prefix, if scored; steps must be tokens."""
    if parted.flip_position is None or parted.is_approximate:
        return ()
    named = (("baseline", other, one), ("candidate", one, other))
    choices = (_find_choice(stack, of, scorer, at=parted.flip_position) for stack, of, scorer in named)
    return tuple(choice for choice in choices if choice is not None)


def _find_choice(stack: str, of: Half, scorer: Half, *, at: int) -> contract.ForcedFlip | None:
    """Return what the scorer's stack gives at a position of the other side's response, if scored.

    stack: the side of the scorer.
    """
    answer = find_scored(of.run, of.repeat, of.case.case_id, other=scorer.run)
    if answer is None:
        return None
    trace, words = read_scored(answer)
    listed = sorted(trace.alternatives(at), key=lambda each: -each.logprob) if at < len(trace) else []
    if len(listed) < 2 or not math.isfinite(listed[0].logprob - listed[1].logprob):
        return None
    first, second = draw([each.token_id for each in listed[:2]], words)
    margin = listed[0].logprob - listed[1].logprob
    return contract.ForcedFlip(stack=stack, scoring=str(answer.scoring_id), first=first, second=second, margin=margin)


def _replay(one: Half, other: Half) -> str:
    """Return the command to decode the candidate's case again, else the baseline's; "" for two logs."""
    decoded = next(filter(_can_replay, (other, one)), None)
    return "" if decoded is None else replay_command(decoded.run.pk, decoded.case.case_id, repeat=decoded.repeat)


def _can_replay(half: Half) -> bool:
    return acts.refusal("replay", half.run) is None


def _comparison(one: Half, other: Half, terms: Terms) -> int | None:
    """Return the newest comparison that lists this very pair."""
    repeats = one.repeat, other.repeat
    is_whole = Q(comparison__baseline_repeat=None, comparison__candidate_repeat=None)
    is_this = Q(comparison__baseline_repeat=repeats[0], comparison__candidate_repeat=repeats[1])
    rows = DivergenceRecord.objects.filter(
        is_whole | is_this,
        comparison__baseline=one.run.pk,
        comparison__candidate=other.run.pk,
        comparison__treatment=terms.treatment,
        comparison__pair_by=terms.pair_by,
        case_index=one.case.index,
        repeat_baseline=repeats[0],
        repeat_candidate=repeats[1],
    )
    return rows.order_by("-comparison_id").values_list("comparison_id", flat=True).first()


def _describe_change(one: Half, other: Half) -> tuple[ChangedMessage, ...]:
    """Return what differs between the two prompts."""
    messages = compare_prompts(_prompt_of(one.case.content), _prompt_of(other.case.content))
    return tuple(map(write_change, messages))


def _prompt_of(content: dict[str, Any]) -> PromptOfCase:
    return PromptOfCase(content["messages"], content.get("tools"), content.get("input"))


def _find_cause(one: Half, other: Half, parting: Divergence | None, terms: Terms) -> Cause:
    buckets = [half.bucket for half in (one, other) if half.bucket is not None]
    served = pair_facts.served_beside(one.run, other.run, buckets)
    sides = [
        make_response(
            replace(pair_facts.request_settings(half.run), is_thinking_scored=scoring.reads_thinking(half.scorer.spec)),
            UNKNOWN_SERVING if half.bucket_id is None else served[half.bucket_id],
            _response_facts(half),
            score=half.scored.score,
            scorer_digest=half.scorer_digest,
        )
        for half in (one, other)
    ]
    noise = measure_pair_noise(one.run, other.run).between(one.bucket_id, other.bucket_id)
    prompts = [[half.case.content.get(name) for name in ("messages", "tools")] for half in (one, other)]
    has_other_prompt = prompts[0] != prompts[1] if terms.is_prompt else None
    return find_cause(Pair(sides[0], sides[1], has_other_prompt), parting, noise)


def _response_facts(half: Half) -> ResponseFacts:
    own = {field.name for field in fields(ResponseFacts)} - {"place", "vocabulary_id"}
    facts = {name: getattr(half.response, name) for name in own}
    return ResponseFacts(place=None, vocabulary_id=half.vocabulary_id, **facts)


def _manifest(half: Half) -> dict[str, Any]:
    is_known = half.bucket is not None and pair_facts.fingerprint_of(half.bucket) is not None
    manifest: dict[str, Any] = half.bucket.fingerprint.manifest if is_known else {}
    return manifest


def _side(half: Half) -> contract.PairSide:
    response, bucket = half.response, half.bucket
    return contract.PairSide.from_record(
        response,
        **response_content(response, half.scored.reason),
        run=str(half.run.pk),
        score=to_points(half.scored.score),
        n_tokens=None if half.trace is None else len(half.trace),
        fingerprint=bucket.fingerprint.digest if bucket else None,
        batch_class=bucket.batch_class if bucket else None,
        n_repeats=half.n_repeats,
        model=bucket.model.name if bucket else half.run.endpoint.model_name,
        stack=_stack(half.run, bucket),
        scorer_digest=half.scorer_digest,
        can_replay=_can_replay(half),
    )


def _stack(run: RunRecord, bucket: BucketRecord | None) -> FingerprintNamed | None:
    if bucket is None:
        return None
    names = pair_facts.names_on(run.endpoint_id, [bucket.pk])
    return pair_facts.describe_fingerprint(bucket.fingerprint, names[bucket.pk])


def _name_backends(one: Half, other: Half) -> tuple[str, str]:
    if one.bucket_id is None or other.bucket_id is None:
        return "", ""
    names = name_backends((one.run, other.run), ([one.bucket_id], [other.bucket_id]), find=read_names)
    return names[one.bucket_id], names[other.bucket_id]


def _prompts(one: Half, other: Half) -> contract.PairPrompts:
    ids = [None if half.trace is None else half.trace.prompt_token_ids for half in (one, other)]
    digests = one.response.prompt_digest, other.response.prompt_digest
    are_same = None if None in digests else bytes(digests[0] or b"") == bytes(digests[1] or b"")
    pieces: tuple[contract.PromptPiece, ...] = ()
    is_one_vocabulary = WORDS.of(one.traced_text, other.traced_text) is None
    if ids[0] is not None and ids[1] is not None and are_same is not True and is_one_vocabulary:
        pieces = tuple(
            contract.PromptPiece(side=part.side, tokens=tuple(draw(part.ids, one.words)), n_left_out=part.n_left_out)
            for part in find_prompt_parts(ids[0].tolist(), ids[1].tolist())
        )
        are_same = not pieces
    return contract.PairPrompts(
        n_baseline=one.response.n_prompt_tokens,
        n_candidate=other.response.n_prompt_tokens,
        are_same=are_same,
        pieces=pieces,
    )


def _provenance(one: Half, other: Half) -> tuple[Moved, ...]:
    """Return differing facts first, each kind in the order in which it explains something."""
    ours, theirs = _facts(one), _facts(other)
    facts = [Moved(field=name, baseline=ours[name], candidate=theirs[name]) for name in ours]
    return tuple(sorted(facts, key=lambda fact: fact.is_same))


def _facts(half: Half) -> dict[str, Any]:
    response, bucket, process = half.response, half.bucket, half.response.engine_process
    batch = (response.batch_min, response.batch_max)
    size = None if None in batch else f"{batch[0]}" if batch[0] == batch[1] else f"{batch[0]}–{batch[1]}"
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
        "marks": ", ".join(list_mark_names(response.marks)) or "none",
        "recorded": response.recorded_at,
        "request_id": response.request_id or None,
    }
