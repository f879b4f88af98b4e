"""Releases: gates, verdicts, further repeats, signatures."""

from runs.release import verdicts
from runs.release.read import ReleaseStage, release_report, release_stage, shown_stage
from runs.release.read_list import (
    RELEASE_ORDERS,
    ReleaseFilter,
    SuiteBadge,
    rows_of,
    sign_off_lines,
    sortable_releases,
    suite_badge,
    with_outcome,
)
from runs.release.read_waiting import Broken, WaitingRelease, waiting_releases
from runs.release.releases import create_release, rerun_sides
from runs.release.settling import (
    NO_PLANS,
    SETTLE_ACTS,
    SETTLING_STEPS,
    SettlePlans,
    refuse_settling,
    settle_plans,
    settle_release,
)
from runs.release.sign_offs import sign_release
from runs.release.verdict_check import judge, require_document, verdict_change
from runs.release.verdicts import Decided, compare_gate, decide, decide_release

__all__ = [
    "NO_PLANS",
    "RELEASE_ORDERS",
    "SETTLE_ACTS",
    "SETTLING_STEPS",
    "Broken",
    "Decided",
    "ReleaseFilter",
    "ReleaseStage",
    "SettlePlans",
    "SuiteBadge",
    "WaitingRelease",
    "compare_gate",
    "create_release",
    "decide",
    "decide_release",
    "judge",
    "refuse_settling",
    "release_report",
    "release_stage",
    "require_document",
    "rerun_sides",
    "rows_of",
    "settle_plans",
    "settle_release",
    "shown_stage",
    "sign_off_lines",
    "sign_release",
    "sortable_releases",
    "suite_badge",
    "verdict_change",
    "verdicts",
    "waiting_releases",
    "with_outcome",
]
