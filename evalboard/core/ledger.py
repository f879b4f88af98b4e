"""A score's change broken down by cause, adding up exactly. docs/divergence.md defines it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from evalboard.core.cause import CAUSES, CODES
from evalboard.core.pairing import Pairing

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """What one cause did: points = gained + lost, `lost` being at most 0.

    n_cases: cases with a pair of this cause whose scores differ.
    """

    cause: str
    n_cases: int
    points: float
    gained: float
    lost: float


@dataclass(frozen=True, slots=True)
class Ledger:
    """Points of both sides over the cases that have a score on both (n_cases), None where there is none.

    rows: in the order of the tests, only causes that moved a score; their points sum to `difference`.
    """

    n_cases: int
    baseline: float | None
    candidate: float | None
    difference: float | None
    rows: tuple[Row, ...]


def make_ledger(
    baseline: Scores,
    candidate: Scores,
    pairing: Pairing,
    causes: NDArray[np.uint8],
    candidate_by_baseline_scorer: Scores | None = None,
) -> Ledger:
    """Break the difference of two runs down by cause.

    baseline: float64[n_cases, a], candidate: float64[n_cases, b], scores in [0, 1], NaN where missing. causes: uint8,
    codes of cause.CODES, one for each pair. candidate_by_baseline_scorer: like candidate, the same texts under the
    baseline's scorer, NaN where not known: what the scorers themselves moved then goes to `scorer`.
    """
    if len(causes) != len(pairing):
        raise ValueError("there must be one cause for each pair")
    n = int(np.count_nonzero(pairing.is_paired))
    if not n:
        return Ledger(0, None, None, None, ())
    ours = baseline[pairing.cases, pairing.baseline_repeats]
    theirs = candidate[pairing.cases, pairing.candidate_repeats]
    cases, codes, moves = pairing.cases, causes, theirs - ours
    weights = pairing.numerators / (pairing.denominators * n)
    if candidate_by_baseline_scorer is not None:
        alike = candidate_by_baseline_scorer[pairing.cases, pairing.candidate_repeats]
        alike = np.where(np.isnan(alike), theirs, alike)
        cases, weights = np.tile(cases, 2), np.tile(weights, 2)
        codes = np.concatenate([causes, np.full(len(causes), CODES["scorer"], np.uint8)])
        moves = np.concatenate([alike - ours, theirs - alike])
    has_moved = moves != 0
    rows = _rows(cases[has_moved], codes[has_moved], 100 * weights[has_moved] * moves[has_moved])
    points = [_mean_points(side[pairing.is_paired]) for side in (baseline, candidate)]
    return Ledger(n, points[0], points[1], points[1] - points[0], rows)


def shown_tenths(points: Sequence[float], difference: float) -> list[float]:
    """The rows' points to one decimal so that they add up to the difference's, by largest remainder."""
    wanted = int(Decimal(f"{difference:.1f}") * 10)  # the very digits that are shown for it
    exact = [round(10 * value, 6) for value in points]
    tenths = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda row: (tenths[row] - exact[row], -abs(exact[row]), row))
    for row in by_remainder[: max(wanted - sum(tenths), 0)]:
        tenths[row] += 1
    return [tenth / 10 for tenth in tenths]


def _rows(cases: NDArray[np.int64], codes: NDArray[np.uint8], points: Scores) -> tuple[Row, ...]:
    found = []
    for code in np.unique(codes).tolist():
        of_cause = codes == code
        moved = points[of_cause]
        # Exactly rounded sums: the order of cases changes no digit.
        gained, lost = math.fsum(moved[moved > 0].tolist()), math.fsum(moved[moved < 0].tolist())
        n_cases = len(np.unique(cases[of_cause]))
        found.append(Row(CAUSES[code], n_cases, math.fsum(moved.tolist()), gained, lost))
    return tuple(found)


def _mean_points(scores: Scores) -> float:
    """Points of a side: the mean over a case's repeats, then over cases."""
    n_scores = np.count_nonzero(~np.isnan(scores), axis=1)
    return 100 * math.fsum((np.nansum(scores, axis=1) / n_scores).tolist()) / len(scores)
