"""Page-shaped reads. Each returns frozen dataclasses, so that a template cannot issue a query.

Pages and API stand on the same ones; docs/glossary.md has the words.
"""

from runs.selectors.baseline import (
    BaselineRow,
    RotationRow,
    baseline_row,
    baseline_rows,
    current_baselines,
    rotation_rows,
)
from runs.selectors.board import Board, board
from runs.selectors.catalogue import PolicyRow, policy_rows
from runs.selectors.comparison import ComparisonReport, comparison_report
from runs.selectors.divergence_list import DivergencePage, DivergenceRow, divergence_page, divergence_rows, neighbours
from runs.selectors.fingerprint import (
    FingerprintDifference,
    FingerprintReport,
    FingerprintRow,
    FingerprintUse,
    fingerprint_difference,
    fingerprint_report,
    fingerprint_rows,
    fingerprint_use,
)
from runs.selectors.fingerprint_history import EndpointTimeline, timelines
from runs.selectors.health import doorbell_problem, what_is_missing
from runs.selectors.metrics import Metrics, metrics
from runs.selectors.outcome_list import OutcomeCase, outcome_cases
from runs.selectors.pool import PoolRow, pool_rows
from runs.selectors.release import (
    GateReport,
    GateSide,
    Line,
    ReleaseReport,
    ReleaseRow,
    SettlePlan,
    SignOffLine,
    StoryLine,
)
from runs.selectors.release_detail import release_report
from runs.selectors.release_list import ReleaseFilter, release_rows
from runs.selectors.response import ResponseReport, TokenCell, response_report, stored_trace, trace_positions
from runs.selectors.response_list import ResponseRow, response_rows
from runs.selectors.run import BucketReport, CaseRow, RunReport, RunRow
from runs.selectors.run_cases import case_page, case_rows
from runs.selectors.run_detail import run_report
from runs.selectors.run_list import oldest_first, run_rows
from runs.selectors.sign_off import SignOffRecord, sign_off_records
from runs.selectors.suite import SuiteReport, SuiteRow, suite_report, suite_rows, suite_to_compare
from runs.selectors.trace_pair import PairReport, trace_pair
from runs.selectors.worker import WorkerRow, worker_rows

__all__ = [
    "BaselineRow",
    "Board",
    "BucketReport",
    "CaseRow",
    "ComparisonReport",
    "DivergencePage",
    "DivergenceRow",
    "EndpointTimeline",
    "FingerprintDifference",
    "FingerprintReport",
    "FingerprintRow",
    "FingerprintUse",
    "GateReport",
    "GateSide",
    "Line",
    "Metrics",
    "OutcomeCase",
    "PairReport",
    "PolicyRow",
    "PoolRow",
    "ReleaseFilter",
    "ReleaseReport",
    "ReleaseRow",
    "ResponseReport",
    "ResponseRow",
    "RotationRow",
    "RunReport",
    "RunRow",
    "SettlePlan",
    "SignOffLine",
    "SignOffRecord",
    "StoryLine",
    "SuiteReport",
    "SuiteRow",
    "TokenCell",
    "WorkerRow",
    "baseline_row",
    "baseline_rows",
    "board",
    "case_page",
    "case_rows",
    "comparison_report",
    "current_baselines",
    "divergence_page",
    "divergence_rows",
    "doorbell_problem",
    "fingerprint_difference",
    "fingerprint_report",
    "fingerprint_rows",
    "fingerprint_use",
    "metrics",
    "neighbours",
    "oldest_first",
    "outcome_cases",
    "policy_rows",
    "pool_rows",
    "release_report",
    "release_rows",
    "response_report",
    "response_rows",
    "rotation_rows",
    "run_report",
    "run_rows",
    "sign_off_records",
    "stored_trace",
    "suite_report",
    "suite_rows",
    "suite_to_compare",
    "timelines",
    "trace_pair",
    "trace_positions",
    "what_is_missing",
    "worker_rows",
]
