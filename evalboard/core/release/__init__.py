"""Judge a release from the runs of its gates (docs/verdict.md)."""

from evalboard.core.release.gate import GateQuestion, TargetedScores, VerdictLine
from evalboard.core.release.gate_verdict import FIRST_VERDICT_RULES, VERDICT_RULES, digest_verdict, find_change
from evalboard.core.release.other_causes import CAUSE_OF, OK, CauseState, find_other_causes
from evalboard.core.release.serving import DecodedSide
from evalboard.core.release.verdict import GateEvidence, has_enough_cases, judge_gate, judge_release

__all__ = [
    "CAUSE_OF",
    "FIRST_VERDICT_RULES",
    "OK",
    "VERDICT_RULES",
    "CauseState",
    "DecodedSide",
    "GateEvidence",
    "GateQuestion",
    "TargetedScores",
    "VerdictLine",
    "digest_verdict",
    "find_change",
    "find_other_causes",
    "has_enough_cases",
    "judge_gate",
    "judge_release",
]
