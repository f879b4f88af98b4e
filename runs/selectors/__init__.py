"""Page-shaped reads. Each returns frozen dataclasses, so that a template cannot issue a query.

Pages and API stand on the same ones; docs/glossary.md has the words.
"""

from runs.selectors.board import Board, board
from runs.selectors.fingerprint import FingerprintReport, FingerprintRow, fingerprint_report, fingerprint_rows
from runs.selectors.health import what_is_missing
from runs.selectors.response import ResponseReport, TokenCell, response_report, stored_trace, trace_positions
from runs.selectors.response_list import ResponseRow, response_rows
from runs.selectors.run import BucketReport, CaseRow, RunReport, RunRow
from runs.selectors.run_cases import case_rows
from runs.selectors.run_detail import run_report
from runs.selectors.run_list import run_rows
from runs.selectors.suite import SuiteReport, SuiteRow, suite_report, suite_rows
from runs.selectors.worker import WorkerRow, worker_rows

__all__ = [
    "Board",
    "BucketReport",
    "CaseRow",
    "FingerprintReport",
    "FingerprintRow",
    "ResponseReport",
    "ResponseRow",
    "RunReport",
    "RunRow",
    "SuiteReport",
    "SuiteRow",
    "TokenCell",
    "WorkerRow",
    "board",
    "case_rows",
    "fingerprint_report",
    "fingerprint_rows",
    "response_report",
    "response_rows",
    "run_report",
    "run_rows",
    "stored_trace",
    "suite_report",
    "suite_rows",
    "trace_positions",
    "what_is_missing",
    "worker_rows",
]
