"""Export files: a run with its traces, its cases, a comparison's pairs, a release, the sign-offs.

All but the last two are read in parts while sending, within one snapshot of the database, so that an export of any
size takes the same memory and is consistent. docs/formats.md describes them.
"""

from runs.exports.archive import run_archive
from runs.exports.cases import CASE_NAMES, CaseExport, PairTable, case_table, pair_table
from runs.exports.releases import release_bundle, sign_off_lines
from runs.exports.runs import EndedRun, ended_run

__all__ = [
    "CASE_NAMES",
    "CaseExport",
    "EndedRun",
    "PairTable",
    "case_table",
    "ended_run",
    "pair_table",
    "release_bundle",
    "run_archive",
    "sign_off_lines",
]
