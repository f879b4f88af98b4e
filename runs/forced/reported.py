"""Store a trainer's logprobs from a run's log as a finished forced scoring."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models.functions import Now
from numpy.typing import NDArray

from evalboard.core.forced import measure_each_rollout, measure_rollouts
from evalboard.core.rollouts import Rollout
from evalboard.core.trace import TokenTrace
from runs.forced.figures import count_within, store_figures
from runs.models import ForcedAnswerRecord, ForcedScoringRecord, RepeatRecord, RunRecord
from runs.store import traces


@dataclass(frozen=True, slots=True, eq=False)
class ReportedAnswer:
    """An answer with both sides' logprobs in nats, float64[n], as logged; its `trace` has float32.

    is_sampled: bool[n], False for a token that the model did not sample.
    """

    case_index: int
    repeat: RepeatRecord
    trace: TokenTrace
    sampler: NDArray[np.float64]
    trainer: Sequence[float]
    is_sampled: Sequence[bool]


def store_reported(*, run: RunRecord, answers: Sequence[ReportedAnswer], user: Any) -> ForcedScoringRecord:
    """Store a trainer's logprobs for a run, one answer per case, in the caller's transaction.

    Figures use the log's own numbers, of all answers together as in `scoring_figures`.
    """
    rollouts = [_rollout(answer) for answer in answers]
    each = measure_each_rollout(rollouts)
    scoring = ForcedScoringRecord.objects.create(
        run=run,
        status=ForcedScoringRecord.Status.FINISHED,
        repeats=sorted({answer.repeat.index for answer in answers}),
        n_answers=len(answers),
        n_tokens=sum(len(answer.trace) for answer in answers),
        n_done=len(answers),
        created_by=user,
        finished_at=Now(),
    )
    forced = [((answer.case_index, answer.trace.digest), _forced(answer)) for answer in answers]
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
        for answer, (key, _), own in zip(answers, forced, each, strict=True)
    )
    n = count_within([len(answer.trace) for answer in answers])
    scoring.figures = store_figures(measure_rollouts(rollouts[:n], answers=[str(row.pk) for row in rows[:n]]))
    scoring.save(update_fields=["figures"])
    return scoring


def _rollout(answer: ReportedAnswer) -> Rollout:
    return Rollout(
        name="",
        prompt_ids=None,
        token_ids=answer.trace.token_ids,
        is_sampled=np.array(answer.is_sampled, np.bool_),
        logprobs=answer.sampler,
        trainer=np.array(answer.trainer, np.float64),
    )


def _forced(answer: ReportedAnswer) -> TokenTrace:
    """Return the answer's tokens with the trainer's logprobs, without alternatives."""
    nothing = (len(answer.trace), 0)
    return TokenTrace(
        token_ids=answer.trace.token_ids,
        logprobs=np.array(answer.trainer, np.float32),
        alternative_ids=np.empty(nothing, np.int32),
        alternative_logprobs=np.empty(nothing, np.float32),
    )
