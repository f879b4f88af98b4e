"""The cases of a comparison that changed the most, of different kinds, with both answers: what to look at first."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from evalboard.contract.excerpt import ShownCase
from runs.compare.outcomes import JudgedCase
from runs.compare.read_outcomes import shown_cases
from runs.compare.telling import ChosenPair, list_cases

N_WORST = 5
LEADING = 200  # cases, the furthest moved first
MAX_ALIKE = 2  # of one cluster, so that five cases tell different stories


class _Ranked(NamedTuple):
    """moved: how far the case's score did, from 0 to 1."""

    case: JudgedCase
    moved: float
    pair: ChosenPair | None


def worst_cases(
    comparison_id: int, runs: tuple[int, int], *, outcome: str, look: int | None = None, n: int = N_WORST
) -> tuple[ShownCase, ...]:
    """Return the cases that are broken, or fixed, in most repeats, of equal ones those whose logits moved furthest.

    At most MAX_ALIKE part at the same two tokens for the same cause, as long as there are others; the first LEADING
    cases are weighed. runs: those of the comparison. outcome, look: as `case_outcomes` has them. Raises NotFound.
    """
    leading, telling = list_cases(comparison_id, outcome, look, up_to=LEADING)
    ranked = [_Ranked(case, _move(case), pair) for case, pair in zip(leading.cases, telling.pairs, strict=True)]
    ranked.sort(key=lambda each: (-each.moved, -each.pair.movement if each.pair else 0.0))
    shown = list(_differing(ranked, n))
    chosen = {each.case.case_index: each.pair for each in shown if each.pair}
    return shown_cases(comparison_id, runs, [each.case for each in shown], chosen)


def _move(case: JudgedCase) -> float:
    return round(abs(_mean(case.candidate) - _mean(case.baseline)), 9)


def _mean(scores: Iterable[float | None]) -> float:
    known = [score for score in scores if score is not None]
    return sum(known) / len(known)


def _differing(ranked: list[_Ranked], n: int) -> Iterator[_Ranked]:
    """Yield the first n of which no more than MAX_ALIKE are of one cluster; where that leaves too few, the rest too."""
    n_alike: Counter[object] = Counter()
    first: list[_Ranked] = []
    rest: list[_Ranked] = []
    for each in ranked:
        story = each.pair and (each.pair.cause, each.pair.token_baseline, each.pair.token_candidate)
        n_alike[story] += 1
        (rest if story is not None and n_alike[story] > MAX_ALIKE else first).append(each)
    yield from sorted([*first, *rest][:n], key=ranked.index)
