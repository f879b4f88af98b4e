"""Suites and their versions, their history and noise; scoring a run again."""

from runs.suites import read
from runs.suites.after_rotation import run_reference_sets, run_reference_sets_on
from runs.suites.noise import REPEATS
from runs.suites.read import (
    SUITE_ORDERS,
    SuiteReport,
    cases_report,
    newest_runs,
    suite_report,
    suite_rows,
    suite_to_compare,
)
from runs.suites.read_standing import BASELINES_READ, SuiteStanding, suite_standing
from runs.suites.read_worth import CasesWorth, SomeCases, cases_worth
from runs.suites.rescoring import rescore_run, set_endings
from runs.suites.suites import case_content, keep_version, push_suite, reference_suite, store_scorer

__all__ = [
    "BASELINES_READ",
    "REPEATS",
    "SUITE_ORDERS",
    "CasesWorth",
    "SomeCases",
    "SuiteReport",
    "SuiteStanding",
    "case_content",
    "cases_report",
    "cases_worth",
    "keep_version",
    "newest_runs",
    "push_suite",
    "read",
    "reference_suite",
    "rescore_run",
    "run_reference_sets",
    "run_reference_sets_on",
    "set_endings",
    "store_scorer",
    "suite_report",
    "suite_rows",
    "suite_standing",
    "suite_to_compare",
]
