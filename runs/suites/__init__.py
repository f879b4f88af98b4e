"""Suites and their versions, their history and noise; scoring a run again."""

from runs.suites import read
from runs.suites.after_rotation import run_reference_sets, run_reference_sets_on
from runs.suites.decoding import decode_case
from runs.suites.noise import REPEATS
from runs.suites.own_scorers import bind_document, bind_scorer, own_scorers
from runs.suites.read import (
    SUITE_ORDERS,
    SuiteReport,
    cases_report,
    suite_report,
    suite_rows,
    suite_slugs,
    suite_to_compare,
)
from runs.suites.read_case import RUNS_SHOWN, case_history
from runs.suites.read_standing import BASELINES_READ, SuiteStanding, suite_standing
from runs.suites.read_worth import CasesWorth, SomeCases, cases_worth
from runs.suites.rescored import ScoreChanges, rescored_run, rescored_runs, run_to_rescore, score_changes
from runs.suites.rescoring import rescore_run, set_endings
from runs.suites.suites import (
    adopt_scorer,
    case_content,
    keep_version,
    mapping_names,
    planned_version,
    push_suite,
    push_text,
    reference_suite,
    shipped_mapping,
    store_scorer,
)
from runs.suites.trials import (
    TRIALS,
    claim_trial,
    create_trial,
    fail_trial,
    failing_endpoints,
    finish_trial,
    trial_row,
    trial_work,
)

__all__ = [
    "BASELINES_READ",
    "REPEATS",
    "RUNS_SHOWN",
    "SUITE_ORDERS",
    "TRIALS",
    "CasesWorth",
    "ScoreChanges",
    "SomeCases",
    "SuiteReport",
    "SuiteStanding",
    "adopt_scorer",
    "bind_document",
    "bind_scorer",
    "case_content",
    "case_history",
    "cases_report",
    "cases_worth",
    "claim_trial",
    "create_trial",
    "decode_case",
    "fail_trial",
    "failing_endpoints",
    "finish_trial",
    "keep_version",
    "mapping_names",
    "own_scorers",
    "planned_version",
    "push_suite",
    "push_text",
    "read",
    "reference_suite",
    "rescore_run",
    "rescored_run",
    "rescored_runs",
    "run_reference_sets",
    "run_reference_sets_on",
    "run_to_rescore",
    "score_changes",
    "set_endings",
    "shipped_mapping",
    "store_scorer",
    "suite_report",
    "suite_rows",
    "suite_slugs",
    "suite_standing",
    "suite_to_compare",
    "trial_row",
    "trial_work",
]
