"""Scorers: a response and a target in, a score from 0 to 1 and a reason in words out. See docs/suites.md."""

from evalboard.core.scoring.kind import Score
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

__all__ = ["KINDS", "Score", "check_spec", "plan", "plan_digest", "read_spec", "score", "scorer_for", "target_problems"]
