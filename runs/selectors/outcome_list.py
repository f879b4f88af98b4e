"""Cases with what became of them between two runs, for lists with a row for each case."""

from collections.abc import Mapping
from dataclasses import dataclass

from runs.models import Case, Comparison
from runs.selectors.divergence_list import DivergenceRow, gravest_pairs
from runs.selectors.run_cases import prompt_of


@dataclass(frozen=True, slots=True)
class OutcomeCase:
    """A case of the baseline's suite version; `pair` is the gravest of its pairs, None where none differs."""

    case_id: str
    prompt: str
    tags: tuple[str, ...]
    pair: DivergenceRow | None


def outcome_cases(comparison_id: int, case_indexes: list[int]) -> Mapping[int, OutcomeCase]:
    """By index. `comparison_id` is a ComparisonReport's id. Raises NotFound."""
    pairs = gravest_pairs(comparison_id, case_indexes)
    version = Comparison.objects.filter(pk=comparison_id).values("baseline__suite_version")
    return {
        case.index: OutcomeCase(case.case_id, prompt_of(case), tuple(case.tags), pairs.get(case.index))
        for case in Case.objects.filter(suite_version__in=version, index__in=case_indexes)
    }
