"""Score one stack's tokens on a reference stack, and judge the differences (docs/forced.md)."""

from evalboard.core.forced.figures import measure_forced, measure_responses
from evalboard.core.forced.on_policy import (
    MAX_KL,
    OnPolicyCheck,
    OnPolicyState,
    check_on_policy,
    judge_kl,
    measure_each_rollout,
    measure_rollouts,
)
from evalboard.core.forced.positions import ForcedPositions, list_worst, measure_positions
from evalboard.core.forced.verification import choose_statistic, verify_endpoint

__all__ = [
    "MAX_KL",
    "ForcedPositions",
    "OnPolicyCheck",
    "OnPolicyState",
    "check_on_policy",
    "choose_statistic",
    "judge_kl",
    "list_worst",
    "measure_each_rollout",
    "measure_forced",
    "measure_positions",
    "measure_responses",
    "measure_rollouts",
    "verify_endpoint",
]
