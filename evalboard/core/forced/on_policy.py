"""Judge whether training is on-policy by the sampler's and the trainer's logprobs of each token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.forced import AnswerFigures, ForcedFigures
from evalboard.contract.parts import Estimate
from evalboard.contract.rollouts import WorstPosition
from evalboard.core.forced.figures import measure_forced, measure_responses
from evalboard.core.forced.positions import ForcedPositions, Numbers, list_worst
from evalboard.core.rollout_steps import CLIP_RANGE, find_log_ratios
from evalboard.core.rollouts import Rollout, refuse_zeros

OnPolicyState = Literal["bit_identical", "on_policy", "off_policy", "too_few_tokens", "no_kl"]

MAX_KL = 0.001  # nats a token
N_WORST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class OnPolicyCheck:
    """The result of an on-policy check.

    max_kl: limit in nats per token; the whole interval of the KL (k3) is compared with it. worst: the positions with
    the largest |log r|, as indexes into all tokens of the rollout.
    """

    state: OnPolicyState
    max_kl: float
    figures: ForcedFigures
    worst: tuple[WorstPosition, ...]


def check_on_policy(
    rollouts: Sequence[Rollout], *, max_kl: float = MAX_KL, clip_range: float = CLIP_RANGE, random_seed: int = 0
) -> OnPolicyCheck:
    """Judge rollouts by the trainer's logprobs; tokens that the model did not sample are left out.

    Raises InvalidInput where every logprob of the trainer is 0: it wrote the field and computed nothing.
    """
    refuse_zeros(rollouts)
    positions = _lay(rollouts)
    places = _places(rollouts)
    figures = measure_forced(positions, clip_range=clip_range, random_seed=random_seed, places=places)
    worst = tuple(each for each in list_worst(positions, N_WORST, places=places) if each.log_ratio)
    state = judge_kl(figures.kl_k3, is_identical=figures.is_identical, max_kl=max_kl)
    return OnPolicyCheck(state=state, max_kl=max_kl, figures=figures, worst=worst)


def measure_rollouts(rollouts: Sequence[Rollout], *, answers: Sequence[str]) -> ForcedFigures:
    """Measure what `check_on_policy` judges, as it does; answers: the id of each rollout.

    Tokens that the model did not sample are left out; positions are places among all tokens of a rollout.
    """
    return measure_forced(_lay(rollouts), places=_places(rollouts), answers=answers)


def measure_each_rollout(rollouts: Sequence[Rollout]) -> tuple[AnswerFigures, ...]:
    """Measure each rollout separately, in order. See `measure_rollouts` for all together."""
    return tuple(
        figures
        if figures.worst_at is None
        else figures.model_copy(update={"worst_at": int(_places([rollout])[figures.worst_at])})
        for figures, rollout in zip(measure_responses(_lay(rollouts)), rollouts, strict=True)
    )


def judge_kl(kl: Estimate | None, *, is_identical: bool, max_kl: float, are_draws: bool = True) -> OnPolicyState:
    """Return the state of a check by comparing the whole interval of the KL (k3) with max_kl.

    are_draws: the tokens were sampled from the distribution that their logprobs describe. If not, the estimate is no KL
    and is not judged; identical bits are reported all the same.
    """
    if is_identical:
        return "bit_identical"
    if not are_draws:
        return "no_kl"
    if kl is None or kl.low is None or kl.high is None:
        return "too_few_tokens"
    if kl.high <= max_kl:
        return "on_policy"
    return "off_policy" if kl.low > max_kl else "too_few_tokens"


def _places(rollouts: Sequence[Rollout]) -> NDArray[np.int64]:
    """Return the index of each sampled token among all tokens of its rollout."""
    return np.concatenate([np.zeros(0, np.int64), *(np.flatnonzero(rollout.is_sampled) for rollout in rollouts)])


def _lay(rollouts: Sequence[Rollout]) -> ForcedPositions:
    ratios = [_log_ratios(rollout) for rollout in rollouts]
    log_ratios = np.concatenate([np.zeros(0), *ratios])
    starts = np.concatenate([[0], np.cumsum([len(each) for each in ratios], dtype=np.int64)])
    return ForcedPositions(starts, log_ratios, np.full(len(log_ratios), np.nan))


def _log_ratios(rollout: Rollout) -> Numbers:
    trainer = np.full(len(rollout.token_ids), np.nan) if rollout.trainer is None else rollout.trainer
    return find_log_ratios(rollout.logprobs[rollout.is_sampled], trainer[rollout.is_sampled])
