"""Two runs compared: the ledger of causes, the list of divergences, one pair of traces."""

from runs.compare import comparisons, inputs
from runs.compare.case_lists import ALL_CASES, CASE_LISTS, SCORE_CHANGED
from runs.compare.comparisons import compare, work_on_comparison
from runs.compare.inputs import ComparisonInputs, SideKey, StoredSide, choose_terms
from runs.compare.outcomes import case_outcomes
from runs.compare.read import case_ids, drawn, read_computations, report_of
from runs.compare.read_divergences import (
    CaseLink,
    DivergenceFilter,
    Neighbours,
    divergence_page,
    divergence_rows,
    n_divergences,
    neighbours,
    outcome_rows,
)
from runs.compare.read_excerpts import pair_excerpts
from runs.compare.read_outcomes import (
    SORTS,
    OutcomeList,
    OutcomeRow,
    outcome_clusters,
    outcome_neighbours,
    outcome_page,
    worst_cases,
)
from runs.compare.read_pair import trace_pair
from runs.compare.representatives import choose_pairs

__all__ = [
    "ALL_CASES",
    "CASE_LISTS",
    "SCORE_CHANGED",
    "SORTS",
    "CaseLink",
    "ComparisonInputs",
    "DivergenceFilter",
    "Neighbours",
    "OutcomeList",
    "OutcomeRow",
    "SideKey",
    "StoredSide",
    "case_ids",
    "case_outcomes",
    "choose_pairs",
    "choose_terms",
    "compare",
    "comparisons",
    "divergence_page",
    "divergence_rows",
    "drawn",
    "inputs",
    "n_divergences",
    "neighbours",
    "outcome_clusters",
    "outcome_neighbours",
    "outcome_page",
    "outcome_rows",
    "pair_excerpts",
    "read_computations",
    "report_of",
    "trace_pair",
    "work_on_comparison",
    "worst_cases",
]
