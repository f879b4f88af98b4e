"""Scorers: turn a response and a target into a score from 0 to 1 with a reason (docs/suites.md)."""

from evalboard.core.scoring.examples import EXAMPLES, PASSES
from evalboard.core.scoring.external import (
    EXTERNAL,
    SCORER_NAME,
    ScorerReply,
    UnreadableReply,
    external_specs,
    is_external,
    read_reply,
    single_plan,
)
from evalboard.core.scoring.judge import (
    JUDGE,
    is_judged,
    judge_spec,
    read_judgement,
    render_judgement,
    unread_reason,
)
from evalboard.core.scoring.kind import Score, capped
from evalboard.core.scoring.metric import MEAN, PASS_ALL, PASS_AT, MetricSpec, parse_metric
from evalboard.core.scoring.plan import (
    KINDS,
    TRUNCATED,
    Plan,
    check_spec,
    plan,
    plan_digest,
    read_spec,
    reads_answers,
    reads_thinking,
    score,
    scorer_for,
    scores_here,
    target_problems,
)
from evalboard.core.scoring.reasons import failure_kind, shown
from evalboard.core.scoring.recorded import MAX_SOURCE_CHARS, RECORDED, is_recorded
from evalboard.core.scoring.response_json import UnreadableJson, parse_response_json

__all__ = [
    "EXAMPLES",
    "EXTERNAL",
    "JUDGE",
    "KINDS",
    "MAX_SOURCE_CHARS",
    "MEAN",
    "PASSES",
    "PASS_ALL",
    "PASS_AT",
    "RECORDED",
    "SCORER_NAME",
    "TRUNCATED",
    "MetricSpec",
    "Plan",
    "Score",
    "ScorerReply",
    "UnreadableJson",
    "UnreadableReply",
    "capped",
    "check_spec",
    "external_specs",
    "failure_kind",
    "is_external",
    "is_judged",
    "is_recorded",
    "judge_spec",
    "parse_metric",
    "parse_response_json",
    "plan",
    "plan_digest",
    "read_judgement",
    "read_reply",
    "read_spec",
    "reads_answers",
    "reads_thinking",
    "render_judgement",
    "score",
    "scorer_for",
    "scores_here",
    "shown",
    "single_plan",
    "target_problems",
    "unread_reason",
]
