"""Store a trainer's logprobs from a run's log as a finished forced scoring."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from django.db.models.functions import Now
from numpy.typing import NDArray

from evalboard.core.forced import measure_each_rollout, measure_rollouts
from evalboard.core.rollouts import Rollout
from evalboard.core.trace import TokenTrace
from evalboard.importers.records import LoggedTrainer
from runs.forced.figures import count_within, store_figures
from runs.imports.responses import Responses, Traces
from runs.models import ForcedAnswerRecord, ForcedScoringRecord, RepeatRecord, RunRecord
from runs.store import traces


class ReportedAnswer(NamedTuple):
    """An answer to a case with both sides' logprobs as logged, in nats; its `trace` has float32."""

    case_index: int
    repeat: RepeatRecord
    trace: TokenTrace
    sampler: NDArray[np.float64]
    trainer: LoggedTrainer


def store_trainer(
    run: RunRecord, repeats: Sequence[RepeatRecord], answers: Responses, decoded: Traces, *, user: Any
) -> None:
    """Store the trainer's logprobs of a log, if any, in the transaction that stores its run.

    One answer per case. Figures use the log's own numbers, of all answers together as in `scoring_figures`.
    """
    by_index = {repeat.index: repeat for repeat in repeats}
    reported = [
        ReportedAnswer(key[1], by_index[key[0]], decoded[key], each.positions.logprobs, each.trainer)
        for key, each in sorted(answers.items())
        if each.trainer is not None and each.positions and key in decoded
    ]
    if reported:
        _store(run, reported, user)


def _store(run: RunRecord, reported: Sequence[ReportedAnswer], user: Any) -> None:
    rollouts = [_rollout(answer) for answer in reported]
    each = measure_each_rollout(rollouts)
    scoring = ForcedScoringRecord.objects.create(
        run=run,
        status=ForcedScoringRecord.Status.FINISHED,
        repeats=sorted({answer.repeat.index for answer in reported}),
        n_answers=len(reported),
        n_tokens=sum(len(answer.trace) for answer in reported),
        n_done=len(reported),
        created_by=user,
        finished_at=Now(),
    )
    forced = [((answer.case_index, answer.trace.digest), _forced(answer)) for answer in reported]
    places = traces.store_blocks(run.pk, forced, is_final=True)
    rows = ForcedAnswerRecord.objects.bulk_create(
        ForcedAnswerRecord(
            scoring=scoring,
            case_index=answer.case_index,
            trace_digest=answer.trace.digest,
            repeat=answer.repeat,
            trace_block_id=places[key].block_id,
            trace_slot=places[key].slot,
            n_tokens=len(answer.trace),
            tokens=ForcedAnswerRecord.Tokens.SAME,
            figures=own.to_stored(),
        )
        for answer, (key, _), own in zip(reported, forced, each, strict=True)
    )
    n = count_within([len(answer.trace) for answer in reported])
    scoring.figures = store_figures(measure_rollouts(rollouts[:n], answers=[str(row.pk) for row in rows[:n]]))
    scoring.save(update_fields=["figures"])


def _rollout(answer: ReportedAnswer) -> Rollout:
    return Rollout(
        name="",
        prompt_ids=None,
        token_ids=answer.trace.token_ids,
        is_sampled=np.array(answer.trainer.is_sampled, np.bool_),
        logprobs=answer.sampler,
        trainer=np.array(answer.trainer.logprobs, np.float64),
    )


def _forced(answer: ReportedAnswer) -> TokenTrace:
    """Return the answer's tokens with the trainer's logprobs, without alternatives."""
    nothing = (len(answer.trace), 0)
    return TokenTrace(
        token_ids=answer.trace.token_ids,
        logprobs=np.array(answer.trainer.logprobs, np.float32),
        alternative_ids=np.empty(nothing, np.int32),
        alternative_logprobs=np.empty(nothing, np.float32),
    )
