"""Judge a release from the runs of its gates (docs/verdict.md)."""

from evalboard.core.verdict.gate import GateQuestion, TargetedScores
from evalboard.core.verdict.gate_verdict import FIRST_VERDICT_RULES, VERDICT_RULES, GateInput
from evalboard.core.verdict.verdict import decide_from_gates, has_enough_cases, judge_gate

__all__ = [
    "FIRST_VERDICT_RULES",
    "VERDICT_RULES",
    "GateInput",
    "GateQuestion",
    "TargetedScores",
    "decide_from_gates",
    "has_enough_cases",
    "judge_gate",
]
