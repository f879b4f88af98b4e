"""Log how far the sampler of a training loop is from its trainer, step by step (docs/forced.md).

`log` takes the tensors that a trainer of verl, TRL or SkyRL holds, and torch is never imported.
"""

import functools
import logging
from collections.abc import Mapping
from typing import Any

from evalboard.client.access import Access, find_access
from evalboard.client.errors import Unreachable, WrongUse
from evalboard.client.rest import RestClient
from evalboard.contract.rollouts import RolloutFigures
from evalboard.core.errors import EvalboardError
from evalboard.core.rollout_steps import CLIP_RANGE, TopK, measure_step
from evalboard.wording.rollouts import describe_worst_token, explain_limits

logger = logging.getLogger(__name__)
_stored: set[str] = set()  # series of which this process has stored a step


class RolloutMismatch(EvalboardError):
    """A step is over the limits that its caller gave; `figures` are its numbers."""

    code = "rollout_mismatch"
    title = "The sampler is not the policy that is trained"

    def __init__(self, detail: str, figures: RolloutFigures) -> None:
        super().__init__(detail)
        self.figures = figures


def log(
    step: int,
    batch: Mapping[str, Any],
    *,
    series: str,
    max_kl: float | None = None,
    max_clip_share: float | None = None,
    clip_range: float = CLIP_RANGE,
    top_k: TopK | None = None,
    sampler_top_k: TopK | None = None,
    trainer_experts: Any = None,
) -> RolloutFigures:
    """Measure a step, store it as a step of `series`, and raise RolloutMismatch if it is over a limit.

    batch: tensors of torch or numpy by the names of docs/forced.md. max_kl: of k3, in nats per token. max_clip_share:
    of the tokens whose ratio is outside 1 ± clip_range. top_k, sampler_top_k: token ids and logprobs [B, T, k] of the
    likeliest tokens. trainer_experts: the trainer's own routing, [B, S, layers, k]. A step that was logged before is
    replaced. If the server does not answer, a warning is logged and training goes on: the limits are checked all the
    same. Raises InvalidInput for tensors that cannot be read. Raises WrongUse for a wrong token or name, but not after
    a step of the series was stored: a token that expires ends no training.
    """
    figures = measure_step(
        batch, clip_range=clip_range, top_k=top_k, sampler_top_k=sampler_top_k, trainer_experts=trainer_experts
    )
    body = {"step": step, "figures": figures.to_json(), "max_kl": max_kl, "max_clip_share": max_clip_share}
    try:
        figures = _client(find_access()).log_rollout(series, body).value
        _stored.add(series)
    except (Unreachable, WrongUse) as problem:
        if isinstance(problem, WrongUse) and series not in _stored:
            raise
        logger.warning("Step %d of %s was not stored: %s", step, series, problem.detail)
    if words := explain_limits(figures, max_kl=max_kl, max_clip_share=max_clip_share):
        raise RolloutMismatch(f"Step {step} of {series}: {words} {describe_worst_token(figures)}".rstrip(), figures)
    return figures


@functools.cache
def _client(access: Access) -> RestClient:
    """Return one client per server and token, so that a step costs one request on an open connection."""
    return RestClient(access.url, access.token)
