"""Which cases broke, were fixed or are unstable between two runs: the ones that a verdict counts, by the same rule."""

from dataclasses import dataclass

import numpy as np

from evalboard.core import evidence, paired
from evalboard.core.live_answers import Drawn
from evalboard.core.paired import Outcomes
from runs import pair_facts
from runs.models import Repeat
from runs.services import comparison_inputs
from runs.services.comparison_inputs import Inputs, Side
from runs.services.verdict_inputs import LEFT_OUT

CaseScores = tuple[float | None, ...]  # by repeat, None where there is no draw


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """A case by its index in the baseline's suite version, with the scores that it was judged by."""

    case_index: int
    baseline: CaseScores
    candidate: CaseScores


@dataclass(frozen=True, slots=True)
class CaseOutcomes:
    """Cases with the outcome that was asked for, who moved furthest first. counts: the number with each outcome."""

    cases: tuple[CaseOutcome, ...]
    counts: dict[str, int]


def case_outcomes(
    *, outcome: str, baseline: int, candidate: int, repeats: tuple[int, int] | None = None, look: int | None = None
) -> CaseOutcomes:
    """Judge the cases of two runs as `compare` takes them; `look`: by the first so many repeats of each side.

    outcome: one of paired.OUTCOMES. There are none where several buckets served a side. Raises what `compare` raises.
    """
    ours, theirs, _ = comparison_inputs.find(baseline=baseline, candidate=candidate, repeats=repeats)
    inputs = comparison_inputs.load(ours, theirs)
    sides = _entering(inputs, look)
    found = _outcomes(inputs, sides)
    if found is None:
        return CaseOutcomes((), {})
    indexes = inputs.baseline.case_indexes
    cases = tuple(
        CaseOutcome(int(indexes[case]), *(_listed(side.scores[case]) for side in sides))
        for case in getattr(found, outcome).tolist()
    )
    return CaseOutcomes(cases, _counts(found))


def counted(inputs: Inputs) -> dict[str, int] | None:
    """How many cases have each outcome over all repeats; None where several buckets served a side."""
    found = _outcomes(inputs, _entering(inputs, None))
    return None if found is None else _counts(found)


def _counts(found: Outcomes) -> dict[str, int]:
    return {outcome: len(getattr(found, outcome)) for outcome in paired.OUTCOMES}


def _entering(inputs: Inputs, look: int | None) -> tuple[Drawn, Drawn]:
    return _draws(inputs.baseline).first(look), _draws(inputs.candidate).first(look)


def _draws(side: Side) -> Drawn:
    left_out = set(Repeat.objects.filter(pk__in=side.key.repeat_ids, status__in=LEFT_OUT).values_list("pk", flat=True))
    places = [at for at, repeat in enumerate(side.key.repeat_ids) if repeat not in left_out]
    drawn = pair_facts.draws_of(side.key.run, (side.key.repeats[at] for at in places))
    return evidence.read_side(side.scores[:, places], side.marks[:, places], drawn)[0]


def _outcomes(inputs: Inputs, sides: tuple[Drawn, Drawn]) -> Outcomes | None:
    """By the places of the cases in the inputs; of cases that have a score on both sides."""
    if inputs.matched.is_mixed:
        return None
    has_both = np.flatnonzero(~(np.isnan(sides[0].scores).all(axis=1) | np.isnan(sides[1].scores).all(axis=1)))
    found = paired.find_outcomes(sides[0].scores[has_both], sides[1].scores[has_both])
    return Outcomes(has_both[found.broken], has_both[found.fixed], has_both[found.unstable])


def _listed(scores: np.ndarray[tuple[int], np.dtype[np.float64]]) -> CaseScores:
    return tuple(None if np.isnan(score) else float(score) for score in scores)
