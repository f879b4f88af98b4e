"""Scorers: a response and a target in, a score from 0 to 1 and a reason in words out. See docs/suites.md."""

from evalboard.core.scoring.kind import Score, capped
from evalboard.core.scoring.plan import (
    KINDS,
    check_spec,
    plan,
    plan_digest,
    read_spec,
    score,
    scorer_for,
    target_problems,
)
from evalboard.core.scoring.recorded import is_recorded

__all__ = [
    "KINDS",
    "Score",
    "capped",
    "check_spec",
    "is_recorded",
    "plan",
    "plan_digest",
    "read_spec",
    "score",
    "scorer_for",
    "target_problems",
]
