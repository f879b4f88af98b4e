"""Estimate what runs will take, from the pace of earlier ones."""

from dataclasses import dataclass

from evalboard.contract.run import RunCost


@dataclass(frozen=True, slots=True)
class Pace:
    """Measured seconds and tokens of one pass over the suite, and seconds of an engine start.

    None if not measured yet.
    """

    pass_seconds: float | None = None
    pass_tokens: float | None = None
    start_seconds: float | None = None


def estimate_cost(n_runs: int, *, pace: Pace, is_restarted: bool, has_engine: bool) -> RunCost:
    """Estimate the cost of n passes. External servers have no engine starts; minutes are those of calls."""
    n_starts = 0 if not (has_engine and n_runs) else n_runs if is_restarted else min(n_runs, 2)
    seconds: float | None = None
    if pace.pass_seconds is not None and (pace.start_seconds is not None or not n_starts):
        seconds = n_runs * pace.pass_seconds + n_starts * (pace.start_seconds or 0.0)
    tokens = None if pace.pass_tokens is None else n_runs * pace.pass_tokens
    minutes = None if seconds is None else seconds / 60
    return RunCost(n_runs=n_runs, n_starts=n_starts, tokens=tokens, minutes=minutes)
