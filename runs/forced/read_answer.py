"""One response on every stack that scored it, and by its trainer: what each gave its tokens."""

from dataclasses import dataclass

import numpy as np

from evalboard.core.forced import ForcedPositions, measure_positions
from evalboard.core.rollout_steps import CLIP_RANGE
from evalboard.core.trace import TokenTrace, join_traces, read_trace
from runs.forced.marks import ForcedMark, list_marks
from runs.models import ForcedAnswerRecord
from runs.pairs.scored_answers import answers_of_response, in_same_tokens, read_scored, responses_at


@dataclass(frozen=True, slots=True)
class AnswerElsewhere:
    """One response's scoring. endpoint: the scoring one; None if its trainer gave the logprobs.

    marks: the tokens that would not have been chosen; of a trainer, those whose ratio lies beyond the clip range, or
    else the one that is furthest off.
    """

    scoring: str
    endpoint: str | None
    n_tokens: int
    marks: tuple[ForcedMark, ...]
    positions: ForcedPositions
    trace: TokenTrace

    def log_ratio(self, at: int) -> float | None:
        """Return log r at a position, in nats; None where either side gave no logprob."""
        value = float(self.positions.log_ratios[at])
        return None if np.isnan(value) else value

    def logprob(self, at: int) -> float | None:
        value = float(self.trace.logprobs[at])
        return None if np.isnan(value) else value


def answers_elsewhere(run_id: int, repeat: int, case_id: str) -> tuple[AnswerElsewhere, ...]:
    """Return a response's newest scoring on each stack, its trainer's first."""
    response = responses_at(run_id, repeat=repeat, case_id=case_id).select_related("trace_block").first()
    if response is None or response.trace_block is None or response.trace_slot is None:
        return ()
    newest: dict[int | None, ForcedAnswerRecord] = {}
    for answer in in_same_tokens(answers_of_response(run_id, response)):
        newest.setdefault(answer.scoring.bucket_id, answer)
    own = read_trace(bytes(response.trace_block.data), response.trace_slot)
    rows = sorted(newest.values(), key=lambda answer: not answer.scoring.is_reported)
    return tuple(_elsewhere(own, answer) for answer in rows)


def _elsewhere(own: TokenTrace, answer: ForcedAnswerRecord) -> AnswerElsewhere:
    forced, words = read_scored(answer)
    ours = TokenTrace(forced.token_ids, own.logprobs, forced.alternative_ids, forced.alternative_logprobs)
    positions = measure_positions(join_traces([ours]), join_traces([forced]))
    return AnswerElsewhere(
        scoring=str(answer.scoring_id),
        endpoint=None if answer.scoring.endpoint is None else answer.scoring.endpoint.slug,
        n_tokens=len(forced),
        marks=_beyond_clip(positions) if answer.scoring.is_reported else list_marks(forced, words),
        positions=positions,
        trace=forced,
    )


def _beyond_clip(positions: ForcedPositions) -> tuple[ForcedMark, ...]:
    with np.errstate(invalid="ignore", over="ignore"):
        places = np.flatnonzero(np.abs(np.expm1(positions.log_ratios)) > CLIP_RANGE)
    if not len(places) and np.nan_to_num(positions.gaps).any():
        places = np.array([np.nanargmax(positions.gaps)])
    return tuple(ForcedMark(position, "") for position in places.tolist())
