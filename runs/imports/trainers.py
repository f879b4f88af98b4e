"""What a trainer gave the tokens of a log's answers, stored as a forced scoring of its run."""

from collections.abc import Sequence
from typing import Any

from runs.forced import ReportedAnswer, store_reported
from runs.imports.responses import Responses, Traces
from runs.models import RepeatRecord, RunRecord


def store_trainer(
    run: RunRecord, repeats: Sequence[RepeatRecord], answers: Responses, decoded: Traces, *, user: Any
) -> None:
    """Store the trainer's logprobs of a log, if any, in the transaction that stores its run."""
    by_index = {repeat.index: repeat for repeat in repeats}
    reported = [
        ReportedAnswer(
            case_index=key[1],
            repeat=by_index[key[0]],
            trace=decoded[key],
            sampler=each.positions.logprobs,
            trainer=each.trainer.logprobs,
            is_sampled=each.trainer.is_sampled,
        )
        for key, each in sorted(answers.items())
        if each.trainer is not None and each.positions and key in decoded
    ]
    if reported:
        store_reported(run=run, answers=reported, user=user)
