"""Judge whether training is on-policy: the sampler's logprobs against the trainer's for the tokens that were drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from evalboard.core.errors import InvalidInput
from evalboard.core.forced.figures import CLIP_RANGE, ForcedFigures, measure_forced
from evalboard.core.forced.positions import ForcedPositions, Numbers, WorstPosition, find_log_ratios, list_worst
from evalboard.core.forced.rollouts import Rollout

OnPolicyState = Literal["bit_identical", "on_policy", "off_policy", "too_few_tokens"]

MAX_KL = 0.001  # nats a token
N_WORST = 10


class Bounded(Protocol):
    """A number's interval, as it is computed or as REST answers it; None on both sides where there is none."""

    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OnPolicyCheck:
    """What a check comes to. max_kl: nats a token, what the KL (k3) is held against, with its whole interval.

    worst: the positions with the largest |log r|, by their places among all tokens of the rollout.
    """

    state: OnPolicyState
    max_kl: float
    figures: ForcedFigures
    worst: tuple[WorstPosition, ...]


def check_on_policy(
    rollouts: Sequence[Rollout], *, max_kl: float = MAX_KL, clip_range: float = CLIP_RANGE, random_seed: int = 0
) -> OnPolicyCheck:
    """Judge rollouts of which the trainer's logprobs are known; tokens that the model did not sample are left out.

    Raises InvalidInput where every logprob of the trainer is 0: it wrote the field and computed nothing.
    """
    known = [each.trainer[each.is_sampled] for each in rollouts if each.trainer is not None]
    if sum(map(len, known)) and not any(each.any() for each in known):
        raise InvalidInput("Every logprob of the trainer is 0, as some write where they computed none.")
    positions = _lay(rollouts)
    figures = measure_forced(positions, clip_range=clip_range, random_seed=random_seed)
    places = [np.flatnonzero(rollout.is_sampled) for rollout in rollouts]
    worst = tuple(
        WorstPosition(each.response, int(places[each.response][each.position]), each.log_ratio)
        for each in list_worst(positions, N_WORST)
        if each.log_ratio
    )
    state = judge_kl(figures.kl_k3, is_identical=figures.is_identical, max_kl=max_kl)
    return OnPolicyCheck(state=state, max_kl=max_kl, figures=figures, worst=worst)


def judge_kl(kl: Bounded | None, *, is_identical: bool, max_kl: float) -> OnPolicyState:
    """Return the state of a check from the KL (k3), which is held against max_kl with its whole interval."""
    if is_identical:
        return "bit_identical"
    if kl is None or kl.low is None or kl.high is None:
        return "too_few_tokens"
    if kl.high <= max_kl:
        return "on_policy"
    return "off_policy" if kl.low > max_kl else "too_few_tokens"


def _lay(rollouts: Sequence[Rollout]) -> ForcedPositions:
    ratios = [_log_ratios(rollout) for rollout in rollouts]
    log_ratios = np.concatenate([np.zeros(0), *ratios])
    starts = np.concatenate([[0], np.cumsum([len(each) for each in ratios], dtype=np.int64)])
    return ForcedPositions(starts, log_ratios, np.full(len(log_ratios), np.nan))


def _log_ratios(rollout: Rollout) -> Numbers:
    trainer = np.full(len(rollout.token_ids), np.nan) if rollout.trainer is None else rollout.trainer
    return find_log_ratios(rollout.logprobs[rollout.is_sampled], trainer[rollout.is_sampled])
