"""Estimate what a condition costs (engine starts, tokens, engine minutes) from earlier runs."""

from collections.abc import Iterable
from dataclasses import dataclass

from evalboard.contract.lab import ArmCost


@dataclass(frozen=True, slots=True)
class Pace:
    """Measured seconds and tokens of one pass over the suite, and seconds of an engine start.

    None if not measured yet.
    """

    pass_seconds: float | None = None
    pass_tokens: float | None = None
    start_seconds: float | None = None


NO_COST = ArmCost(n_runs=0, n_starts=0, tokens=0.0, minutes=0.0)


def estimate_cost(n_runs: int, *, pace: Pace, is_restarted: bool, has_engine: bool) -> ArmCost:
    """Estimate the cost of n passes. External servers have no engine starts; minutes are those of calls."""
    n_starts = 0 if not (has_engine and n_runs) else n_runs if is_restarted else min(n_runs, 2)
    seconds: float | None = None
    if pace.pass_seconds is not None and (pace.start_seconds is not None or not n_starts):
        seconds = n_runs * pace.pass_seconds + n_starts * (pace.start_seconds or 0.0)
    tokens = None if pace.pass_tokens is None else n_runs * pace.pass_tokens
    minutes = None if seconds is None else seconds / 60
    return ArmCost(n_runs=n_runs, n_starts=n_starts, tokens=tokens, minutes=minutes)


def add_costs(costs: Iterable[ArmCost]) -> ArmCost:
    """Add up the costs of conditions; a number that is unknown for one of them is None."""
    n_runs = n_starts = 0
    tokens: float | None = 0.0
    minutes: float | None = 0.0
    for cost in costs:
        n_runs, n_starts = n_runs + cost.n_runs, n_starts + cost.n_starts
        tokens = None if tokens is None or cost.tokens is None else tokens + cost.tokens
        minutes = None if minutes is None or cost.minutes is None else minutes + cost.minutes
    return ArmCost(n_runs=n_runs, n_starts=n_starts, tokens=tokens, minutes=minutes)
