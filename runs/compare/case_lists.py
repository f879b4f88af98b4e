"""The cases of a comparison by what became of them between the sides, those that no verdict counts among them."""

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare import CASE_PARTS, NO_PART
from evalboard.core.stats import SideDraws, average_cases
from runs.compare import inputs as comparison_inputs
from runs.compare.outcomes import CaseOutcomes, JudgedCase, case_outcomes, find_sides, listed, read_draws

ALL_CASES = "all"
CASE_LISTS = (*CASE_PARTS, ALL_CASES)


def listed_cases(comparison_id: int, name: str) -> CaseOutcomes:
    """Return one of CASE_LISTS: the cases whose score changed first, lost before gained, the furthest
    moved before others; then those whose text did.

    Nothing of it is kept: it is read from the columns of both sides, on asking. Raises NotFound.
    """
    ours, theirs, _ = find_sides(comparison_id)
    inputs = comparison_inputs.load(ours, theirs)
    parts = inputs.matched.case_parts
    wanted = np.flatnonzero(parts != NO_PART if name == ALL_CASES else parts == CASE_PARTS.index(name))
    sides = read_draws(inputs.baseline)[0], read_draws(inputs.candidate)[0]
    moves = _moves(sides, wanted)
    order = np.lexsort((wanted, -np.abs(moves), moves >= 0, parts[wanted]))
    places = wanted[order]
    columns = (
        inputs.baseline.case_indexes[places].tolist(),
        listed(sides[0].scores[places]),
        listed(sides[1].scores[places]),
    )
    cases = tuple(
        JudgedCase(index, tuple(baseline), tuple(candidate), None, is_beyond_chance=False)
        for index, baseline, candidate in zip(*columns, strict=True)
    )
    counts = case_outcomes(comparison_id, "broken", up_to=1).counts
    return CaseOutcomes(cases, len(wanted), counts)


def _moves(sides: tuple[SideDraws, SideDraws], cases: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return by how much the mean score of each case rose; 0 where a side has no draw of it."""
    has_both = ~(np.isnan(sides[0].scores[cases]).all(axis=1) | np.isnan(sides[1].scores[cases]).all(axis=1))
    moves = np.zeros(len(cases))
    scored = cases[has_both]
    moves[has_both] = np.round(average_cases(sides[1].scores[scored]) - average_cases(sides[0].scores[scored]), 9)
    return moves
