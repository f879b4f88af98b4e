"""A forced scoring done as a worker would, by an engine that holds every token a little less likely."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from evalboard.core.trace import Failed, Forced, TokenTrace, make_trace
from runs.forced import (
    AnswerToForce,
    ForcedOutcome,
    GivenTokens,
    claim_forced,
    finish_forced,
    give_tokens,
    next_answers,
    record_forced,
)
from runs.models import EngineProcess, ForcedScoringRecord, WorkerRecord
from runs.work import Lease
from tests import build


def claimed() -> Lease:
    lease = claim_forced(worker=build.worker(f"scorer-{WorkerRecord.objects.count()}"))
    assert lease is not None
    return lease


def scored(
    scoring: ForcedScoringRecord,
    *,
    by: EngineProcess | None = None,
    shift: float = 0.25,
    other_at: int | None = 0,
    dies_on: Collection[int] = (),
) -> ForcedScoringRecord:
    """The scoring, ended. other_at: the position of each answer where another token is likelier."""
    process = by or build.process(build.bucket("bfloat16"))
    lease = claimed()
    assert lease.id == scoring.pk
    while answers := next_answers(lease.id):
        record_forced(
            lease=lease,
            outcomes=[outcome(each, process, shift=shift, other_at=other_at, dies_on=dies_on) for each in answers],
        )
    finish_forced(lease=lease)
    scoring.refresh_from_db()
    return scoring


def outcome(
    answer: AnswerToForce,
    process: EngineProcess,
    *,
    shift: float = 0.25,
    other_at: int | None = 0,
    dies_on: Collection[int] = (),
) -> ForcedOutcome:
    given = give_tokens(answer, vocabulary_id=process.vocabulary_id)
    if given is None:
        failed = Failed(0, "not_rebuilt", "Nothing to score.")
        return ForcedOutcome(answer, "", is_rendered=False, process=None, outcome=failed)
    if answer.case_index in dies_on:
        died = Failed(0, "engine_error", "It died.")
        return ForcedOutcome(answer, "", is_rendered=False, process=process, outcome=died)
    trace = forced_trace(answer, given, shift=shift, other_at=other_at)
    return ForcedOutcome(
        answer,
        given.kind,
        is_rendered=given.prompt_token_ids is None,
        process=process,
        outcome=Forced(0, trace, n_cached_tokens=0, batch_min=1, batch_max=1),
    )


def forced_trace(answer: AnswerToForce, given: GivenTokens, *, shift: float, other_at: int | None) -> TokenTrace:
    """The given tokens with the run's logprobs less `shift`; a text is one token for each of its letters."""
    ids = given.answer_token_ids or [1] * len(given.text)
    own = answer.trace.logprobs if answer.trace is not None and given.answer_token_ids else np.full(len(ids), -0.5)
    logprobs = (own - np.float32(shift)).tolist()
    pairs = [[(token, value), ((token + 1) % 6, value - 2.0)] for token, value in zip(ids, logprobs, strict=True)]
    if other_at is not None and other_at < len(pairs):
        (token, value), (other, _) = pairs[other_at]
        pairs[other_at] = [(other, value + 0.5), (token, value)]
    return replace(make_trace(ids, logprobs, pairs), prompt_token_ids=np.array([9, 9], np.int32))
