"""Find the cases that broke, were fixed or are unstable between two runs, by the verdict's rule."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Expression, Func, JSONField, Value
from django.db.models.fields.json import KeyTransform

from evalboard.core.compare import judge_outcomes
from evalboard.core.errors import NotFound
from runs.compare import inputs as comparison_inputs
from runs.compare.inputs import SideKey
from runs.models import ComparisonRecord

CaseScores = tuple[float | None, ...]  # by repeat, None where there is no draw


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case by its index in the baseline's suite version, with the scores that it was judged by.

    chance, is_beyond_chance: as core.stats.OutcomeIndexes has them; chance is None where it is not known.
    """

    case_index: int
    baseline: CaseScores
    candidate: CaseScores
    chance: float | None
    is_beyond_chance: bool


@dataclass(frozen=True, slots=True)
class CaseOutcomes:
    """Cases with one outcome, largest change first: some of all n.

    counts: the fields of contract.OutcomeCounts.
    """

    cases: Sequence[JudgedCase]
    n: int
    counts: dict[str, Any]


def case_outcomes(
    comparison_id: int, outcome: str, look: int | None = None, first: int = 0, up_to: int | None = None
) -> CaseOutcomes:
    """Return the cases of a comparison with an outcome. look: judge only so many first repeats.

    outcome: one of CASE_OUTCOMES. first, up_to: the places that are read, up to the end where it is None. There are no
    cases where several buckets served a side. What is not kept yet is judged now. Raises NotFound.
    """
    parts = kept_cases(outcome, look, first, up_to)
    stored = ComparisonRecord.objects.filter(pk=comparison_id).values_list(*parts).first()
    if stored is None or stored[1] is None:
        ours, theirs, is_current = find_sides(comparison_id)
        if look is not None and look >= max(len(key.repeat_ids) - len(key.unscored_ids) for key in (ours, theirs)):
            return case_outcomes(comparison_id, outcome, None, first, up_to)  # no more are there
        inputs = comparison_inputs.load(ours, theirs)
        judged = judge_outcomes(inputs.baseline, inputs.candidate, look=look)
        if is_current:
            keep(comparison_id, look, judged)
        stored = judged["counts"], judged["cases"][outcome][first:up_to]
    return unpack_cases(outcome, *stored)


def kept_cases(outcome: str, look: int | None, first: int, up_to: int | None) -> tuple[Expression, Expression]:
    """Return where `ComparisonRecord.outcomes` has a list's counts and cases, NULL if not stored."""
    known = kept_at(look)
    cases = KeyTransform(outcome, KeyTransform("cases", known))
    return KeyTransform("counts", known), JsonPart(cases, first, up_to)


def unpack_cases(outcome: str, counts: dict[str, Any] | None, rows: Iterable[Sequence[Any]]) -> CaseOutcomes:
    """Return the stored cases of an outcome."""
    cases = tuple(JudgedCase(index, tuple(ours), tuple(theirs), *chance) for index, ours, theirs, *chance in rows)
    return CaseOutcomes(cases, counts[outcome] if counts else 0, counts or {})


def find_sides(comparison_id: int) -> tuple[SideKey, SideKey, bool]:
    """Return both sides as they are now, and whether the comparison is of them. Raises NotFound."""
    row = ComparisonRecord.objects.defer("summary", "outcomes").filter(pk=comparison_id).first()
    if row is None:
        raise NotFound(f"There is no comparison {comparison_id} any more; compare the two runs again.")
    repeats = None if row.baseline_repeat is None else (row.baseline_repeat, row.candidate_repeat or 0)
    ours, theirs, input_digest = comparison_inputs.find(
        baseline=row.baseline_id, candidate=row.candidate_id, repeats=repeats
    )
    return ours, theirs, input_digest == row.input_digest


class JsonPart(Func):
    """A slice of a JSON list; NULL without a list. first, up_to: like a slice, first at least 0."""

    function = "jsonb_path_query_array"
    output_field = JSONField()

    def __init__(self, rows: Expression, first: int, up_to: int | None) -> None:
        super().__init__(rows, Value(f"$[{first} to {'last' if up_to is None else up_to - 1}]"))


def kept_at(look: int | None) -> KeyTransform:
    """Return where `ComparisonRecord.outcomes` has what was judged at a checkpoint."""
    return KeyTransform(_name(look), "outcomes")


def keep_all(judged: dict[str, Any]) -> dict[str, Any]:
    """Return what `ComparisonRecord.outcomes` keeps of cases that were judged over all repeats."""
    return {_name(None): judged}


def keep(comparison_id: int, look: int | None, known: dict[str, Any]) -> None:
    """Store what is known of a checkpoint, next to what `representatives` stored.

    Skipped while a worker is at the comparison: then the next page does it.
    """
    with transaction.atomic():
        free = ComparisonRecord.objects.select_for_update(skip_locked=True).filter(pk=comparison_id)
        for row in free.only("outcomes"):
            before = row.outcomes.get(_name(look), {})
            row.outcomes[_name(look)] = known if "cases" in known else {**before, **known}
            row.save(update_fields=["outcomes"])


def _name(look: int | None) -> str:
    return "all" if look is None else f"first {look}"
