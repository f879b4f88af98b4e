"""A score's change broken down by cause, adding up exactly. docs/divergence.md defines it."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.compare import CausePoints, ScoreCompared
from evalboard.core.compare.cause import CAUSE_CODES, CAUSES
from evalboard.core.compare.pairing import Pairing
from evalboard.core.rounding import shown
from evalboard.core.stats import average_points, difference_points

# They say who answered or how tokens were chosen, and not how the answer moved: their points are split by looks.
SPLIT_CAUSES = ("model_changed", "sampling_changed", "backend_changed", "model_name_changed")
# What pairs look like: a cause, or confounded, where the sides are known to differ in more than the pair's cause.
PARTS = (*CAUSES, "confounded")

Codes = NDArray[np.uint8]
Scores = NDArray[np.float64]
NoiseOfCases = Callable[[NDArray[np.int64]], float | None]


class LedgerRow(CausePoints):
    """What one cause changed, as stored in a comparison's summary.

    parts: its pairs by what they look like, of PARTS and in that order, where it is one of SPLIT_CAUSES or some are
    confounded; their points sum to the row's.
    """

    parts: tuple["LedgerRow", ...] = ()


@dataclass(frozen=True, slots=True)
class Ledger:
    """Points of both sides over the cases that have a score on both, None where there is none.

    rows: in the order of the tests, only causes that moved a score; their points sum to the difference.
    """

    score: ScoreCompared
    rows: tuple[LedgerRow, ...]


NO_LEDGER = Ledger(ScoreCompared(baseline=None, candidate=None, difference=None), ())


@functools.cache  # few differ
def find_look(cause: str, numeric: str | None, *, is_confounded: bool) -> int:
    """Return how a pair looks, as a place in PARTS. cause, numeric: as in `cause.Cause`."""
    if is_confounded:
        return PARTS.index("confounded")
    return PARTS.index(numeric or ("unknown" if cause in SPLIT_CAUSES else cause))


def make_ledger(
    baseline: Scores,
    candidate: Scores,
    pairing: Pairing,
    causes: Codes,
    looks: Codes,
    alike: tuple[Scores | None, Scores | None] = (None, None),
    noise_of: NoiseOfCases | None = None,
) -> Ledger:
    """Break the difference of two runs down by cause.

    baseline: float64[n_cases, a], candidate: float64[n_cases, b], scores in [0, 1], NaN where missing. causes, looks:
    uint8, one for each pair, codes of CAUSE_CODES and places in PARTS. alike: like baseline and candidate, the
    same texts under the other side's scorer, NaN or None where not known: what the scorers moved then goes to `scorer`.
    noise_of: gives `LedgerRow.noise` for places of cases.
    """
    if not len(causes) == len(looks) == len(pairing):
        raise ValueError("there must be one cause and one look for each pair")
    n = int(np.count_nonzero(pairing.is_paired))
    if not n:
        return NO_LEDGER
    ours, theirs = pairing.take_baseline(baseline), pairing.take_candidate(candidate)
    codes, moves = causes, theirs - ours
    if any(scores is not None for scores in alike):
        codes, looks = (
            np.concatenate([causes, np.full(len(causes), CAUSE_CODES["scorer"], np.uint8)]),
            np.tile(looks, 2),
        )
        moves = np.concatenate(_part_moves(ours, theirs, pairing, alike))
    moved = np.flatnonzero(moves)
    pairs = moved % max(len(pairing), 1)
    points = 100 * (pairing.numerators[pairs] / (pairing.denominators[pairs] * n)) * moves[moved]
    rows = _rows(pairing.cases[pairs], points, codes[moved], looks[moved], noise_of=noise_of)
    one, other = baseline[pairing.is_paired], candidate[pairing.is_paired]
    score = ScoreCompared(
        baseline=average_points(one), candidate=average_points(other), difference=difference_points(one, other)
    )
    return Ledger(score, rows)


def _part_moves(
    ours: Scores, theirs: Scores, pairing: Pairing, alike: tuple[Scores | None, Scores | None]
) -> tuple[Scores, Scores]:
    """Return by pair what the texts moved under one scorer, and what the scorers moved on one text."""
    by_texts, by_scorers = theirs - ours, np.zeros(len(ours))
    baseline, candidate = alike
    if baseline is not None:
        ours_too = pairing.take_baseline(baseline)
        is_known = ~np.isnan(ours_too)
        by_texts = np.where(is_known, theirs - ours_too, by_texts)
        by_scorers = np.where(is_known, ours_too - ours, by_scorers)
    if candidate is not None:  # where both are known, by the scorer of the baseline
        theirs_too = pairing.take_candidate(candidate)
        is_known = ~np.isnan(theirs_too)
        by_texts = np.where(is_known, theirs_too - ours, by_texts)
        by_scorers = np.where(is_known, theirs - theirs_too, by_scorers)
    return by_texts, by_scorers


def round_to_tenths(points: Sequence[float], difference: float) -> list[float]:
    """Round points to one decimal so that they add up to the difference, by largest remainder."""
    wanted = int(shown(10 * shown(difference), 0))  # the very digits that are shown for it
    exact = [shown(10 * value, 6) for value in points]
    tenths = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda row: (tenths[row] - exact[row], -abs(exact[row]), row))
    for row in by_remainder[: max(wanted - sum(tenths), 0)]:
        tenths[row] += 1
    return [tenth / 10 for tenth in tenths]


def _rows(
    cases: NDArray[np.int64],
    points: Scores,
    codes: Codes,
    looks: Codes | None = None,
    *,
    noise_of: NoiseOfCases | None,
) -> tuple[LedgerRow, ...]:
    rows = []
    for code in np.unique(codes).tolist():
        is_so = codes == code
        cause, own, moved = PARTS[code], cases[is_so], points[is_so]
        parts: tuple[LedgerRow, ...] = ()
        if looks is not None and (cause in SPLIT_CAUSES or (looks[is_so] == PARTS.index("confounded")).any()):
            parts = _rows(own, moved, looks[is_so], noise_of=noise_of)
        # Exactly rounded sums: the order of cases changes no digit.
        gained, lost = math.fsum(moved[moved > 0].tolist()), math.fsum(moved[moved < 0].tolist())
        counted = np.unique(own)
        noise = noise_of(counted) if noise_of is not None else None
        rows.append(
            LedgerRow(
                cause=cause,
                n_cases=len(counted),
                points=math.fsum(moved.tolist()),
                gained=gained,
                lost=lost,
                parts=parts,
                noise=noise,
            )
        )
    return tuple(rows)
