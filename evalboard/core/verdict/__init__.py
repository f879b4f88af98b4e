"""Judge a release from the runs of its gates (docs/verdict.md)."""

from evalboard.core.verdict.gate import GateQuestion, TargetedScores, VerdictLine
from evalboard.core.verdict.gate_verdict import FIRST_VERDICT_RULES, VERDICT_RULES
from evalboard.core.verdict.serving import DecodedSide
from evalboard.core.verdict.verdict import GateEvidence, has_enough_cases, judge_gate, judge_release

__all__ = [
    "FIRST_VERDICT_RULES",
    "VERDICT_RULES",
    "DecodedSide",
    "GateEvidence",
    "GateQuestion",
    "TargetedScores",
    "VerdictLine",
    "has_enough_cases",
    "judge_gate",
    "judge_release",
]
