"""Which cases broke, were fixed or are unstable between two runs: the ones that a verdict counts, by the same rule."""

from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models.fields.json import KeyTransform

from evalboard.core.profile import Draws
from evalboard.core.stats import CASE_OUTCOMES, OutcomeIndexes, SideDraws, find_case_outcomes
from evalboard.core.verdict import read_side_draws
from runs.compare import inputs as comparison_inputs
from runs.compare.inputs import Inputs, Side
from runs.models import Comparison
from runs.pairs import pair_facts

UNKNOWN_CHANCE = (None, False)
LEADING = 200  # cases of each outcome that are kept with their scores, so that a page reads no column for them

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
    """Cases with one outcome, those that moved furthest first. counts: the fields of contract.OutcomeCounts."""

    cases: tuple[JudgedCase, ...]
    counts: dict[str, Any]


def case_outcomes(
    *, outcome: str, baseline: int, candidate: int, repeats: tuple[int, int] | None = None, look: int | None = None
) -> CaseOutcomes:
    """Judge the cases of two runs as `compare` takes them; `look`: by the first so many repeats of each side.

    outcome: one of CASE_OUTCOMES. There are none where several buckets served a side. Raises what `compare` raises.
    """
    ours, theirs, input_digest = comparison_inputs.find(baseline=baseline, candidate=candidate, repeats=repeats)
    inputs = comparison_inputs.load(ours, theirs)
    sides = _entering(inputs, None)
    if look is not None and look < max(side.scores.shape[1] for side in sides):
        sides = _entering(inputs, look)
    else:
        look = None  # no more are there, and looks that nobody can take are not kept
    judged = _find_judged(input_digest, look)
    if judged is None:
        judged = _judge(inputs, sides)
        _keep(input_digest, look, judged)
    cases = tuple(_judged_case(judged, place, inputs, sides) for place in judged.get(outcome, ()))
    return CaseOutcomes(cases, judged.get("counts", {}))


def leading_outcomes(comparison_id: int, *, outcome: str, look: int | None = None) -> tuple[JudgedCase, ...]:
    """Return the first LEADING cases that `case_outcomes` has of all repeats, or of a look at fewer than there are.

    What is not kept yet is judged now. Raises Comparison.DoesNotExist.
    """
    path = KeyTransform(outcome, KeyTransform("leading", KeyTransform(_name(look), "outcomes")))
    rows = Comparison.objects.values_list(path, flat=True).get(pk=comparison_id)
    if rows is None:
        row = Comparison.objects.defer("summary", "outcomes").get(pk=comparison_id)
        repeats = None if row.baseline_repeat is None else (row.baseline_repeat, row.candidate_repeat or 0)
        judged = case_outcomes(
            outcome=outcome, baseline=row.baseline_id, candidate=row.candidate_id, repeats=repeats, look=look
        )
        return judged.cases[:LEADING]
    return tuple(JudgedCase(index, tuple(ours), tuple(theirs), *chance) for index, ours, theirs, *chance in rows)


def _judged_case(judged: dict[str, Any], place: int, inputs: Inputs, sides: tuple[SideDraws, SideDraws]) -> JudgedCase:
    chance, is_beyond = judged["chances"].get(str(place), UNKNOWN_CHANCE)
    scores, scores_too = (_listed(side.scores[place]) for side in sides)
    return JudgedCase(int(inputs.baseline.case_indexes[place]), scores, scores_too, chance, is_beyond)


def keep_outcomes(row: Comparison, inputs: Inputs) -> dict[str, Any] | None:
    """Judge the cases over all repeats, keep them with their comparison, and return the counts.

    None where several buckets served a side.
    """
    judged = _judge(inputs, _entering(inputs, None))
    row.outcomes = {_name(None): judged}
    row.save(update_fields=["outcomes"])
    return judged.get("counts")


def _judge(inputs: Inputs, sides: tuple[SideDraws, SideDraws]) -> dict[str, Any]:
    """Return what `Comparison.outcomes` keeps of a look; nothing where several buckets served a side.

    {"counts", "chances": {place: [chance, is_beyond_chance]} of what is known}, by outcome the places of its cases
    in the inputs, in their order, and in "leading" the first of them as JudgedCase has them. Dealing the chances of
    20,000 graded cases takes a tenth of a second, so that no page does it anew.
    """
    if inputs.matched.is_mixed:
        return {}
    has_both = np.flatnonzero(~(np.isnan(sides[0].scores).all(axis=1) | np.isnan(sides[1].scores).all(axis=1)))
    judged = find_case_outcomes(sides[0].scores[has_both], sides[1].scores[has_both])
    places = {outcome: has_both[getattr(judged, outcome)].tolist() for outcome in CASE_OUTCOMES}
    chances = {
        str(has_both[case]): [float(judged.chances[case]), bool(judged.is_beyond_chance[case])]
        for case in np.flatnonzero(~np.isnan(judged.chances)).tolist()
    }
    stored = {**places, "chances": chances, "counts": _counts(judged)}
    leading = {
        outcome: [astuple(_judged_case(stored, place, inputs, sides)) for place in places[outcome][:LEADING]]
        for outcome in CASE_OUTCOMES
    }
    return {**stored, "leading": leading}


def _find_judged(input_digest: str, look: int | None) -> dict[str, Any] | None:
    row = Comparison.objects.filter(input_digest=input_digest)
    return row.values_list(KeyTransform(_name(look), "outcomes"), flat=True).first()


def _keep(input_digest: str, look: int | None, judged: dict[str, Any]) -> None:
    """Keep it, unless a worker is at the comparison: then the next page does."""
    with transaction.atomic():
        free = Comparison.objects.select_for_update(skip_locked=True).filter(input_digest=input_digest)
        for row in free.only("outcomes"):
            row.outcomes[_name(look)] = judged
            row.save(update_fields=["outcomes"])


def _name(look: int | None) -> str:
    return "all" if look is None else f"first {look}"


def _counts(outcomes: OutcomeIndexes) -> dict[str, Any]:
    """Return the fields of contract.OutcomeCounts, as JSON has them."""
    by_chance = {f"{name}_by_chance": getattr(outcomes, f"{name}_by_chance") for name in ("broken", "fixed")}
    return {
        **{outcome: len(getattr(outcomes, outcome)) for outcome in CASE_OUTCOMES},
        **{name: None if each is None else asdict(each) for name, each in by_chance.items()},
    }


def read_draws(side: Side) -> tuple[SideDraws, Draws]:
    """Return the draws of a side's repeats that were scored, and what they are."""
    places = [at for at, repeat in enumerate(side.key.repeat_ids) if repeat not in side.key.unscored_ids]
    draws = pair_facts.draws_of(side.key.run, (side.key.repeats[at] for at in places))
    return read_side_draws(side.scores[:, places], side.marks[:, places], draws)


def _entering(inputs: Inputs, look: int | None) -> tuple[SideDraws, SideDraws]:
    return read_draws(inputs.baseline)[0].first(look), read_draws(inputs.candidate)[0].first(look)


def _listed(scores: np.ndarray[tuple[int], np.dtype[np.float64]]) -> CaseScores:
    return tuple(None if np.isnan(score) else float(score) for score in scores)
