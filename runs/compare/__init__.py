"""Two runs compared: the ledger of causes, the list of divergences, one pair of traces."""

from runs.compare import comparisons, inputs
from runs.compare.comparisons import compare, work_on_comparison
from runs.compare.inputs import Inputs, Side, SideKey
from runs.compare.outcomes import case_outcomes
from runs.compare.read import case_ids, comparison_report
from runs.compare.read_divergences import (
    CaseLink,
    DivergenceFilter,
    divergence_page,
    divergence_rows,
    n_divergences,
    neighbours,
    outcome_rows,
)
from runs.compare.read_pair import trace_pair

__all__ = [
    "CaseLink",
    "DivergenceFilter",
    "Inputs",
    "Side",
    "SideKey",
    "case_ids",
    "case_outcomes",
    "compare",
    "comparison_report",
    "comparisons",
    "divergence_page",
    "divergence_rows",
    "inputs",
    "n_divergences",
    "neighbours",
    "outcome_rows",
    "trace_pair",
    "work_on_comparison",
]
