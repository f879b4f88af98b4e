"""Estimate the change on other cases like these. Repeats do not narrow that interval; more cases do."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.release import ReachInterval
from evalboard.core.stats import ELSEWHERE_ALPHA, POWER, normal_quantile, student_quantile

LEVEL = 0.9
FEW_GROUPS = 10  # a change in fewer groups than this says nothing about other cases

Moves = NDArray[np.float64]


def find_reach(moves: Moves, groups: Sequence[str]) -> ReachInterval | None:
    """Return the interval for other cases. moves: float64[n], each case's change from −1 to 1; groups: "" for none.

    Two cases are added, one that is fixed and one that is broken, which keeps the interval honest for few cases and
    for none that changed. Cases of one group are drawn together: their changes count as one where that makes the
    interval wider. None where all cases are one group, for nothing then says how others would do.
    """
    n = len(moves)
    by_group = _by_group(moves, groups)
    n_groups = len(by_group)
    if n_groups < 2:
        return None
    centre = math.fsum(moves.tolist()) / (n + 2)
    squares = math.fsum(((moves - centre) ** 2).tolist()) + (1 - centre) ** 2 + (1 + centre) ** 2
    alone = math.sqrt(squares / (n + 1) / (n + 2))
    is_grouped = n_groups < n
    grouped = _se_of_groups(by_group, n) if is_grouped else alone
    se = max(alone, grouped)
    half = student_quantile((1 + LEVEL) / 2, n_groups - 1 if is_grouped else n + 1) * se
    n_changed = sum(any(group) for group in by_group)
    return ReachInterval(
        low=max(100 * (centre - half), -100.0),
        high=min(100 * (centre + half), 100.0),
        level=LEVEL,
        n_groups=n_groups,
        n_groups_changed=n_changed,
        design_effect=(grouped / alone) ** 2,
        is_concentrated=is_grouped and 0 < n_changed < FEW_GROUPS,
        resolution_points=100 * (normal_quantile(1 - ELSEWHERE_ALPHA) + normal_quantile(POWER)) * se,
    )


def _by_group(moves: Moves, groups: Sequence[str]) -> list[list[float]]:
    """Return the moves of each group; a case without one is a group by itself."""
    if not any(groups):
        return [[move] for move in moves.tolist()]
    by_group: dict[object, list[float]] = {}
    for index, (group, move) in enumerate(zip(groups, moves.tolist(), strict=True)):
        by_group.setdefault(group or index, []).append(move)
    return list(by_group.values())


def _se_of_groups(by_group: Sequence[Sequence[float]], n: int) -> float:
    mean = math.fsum(move for group in by_group for move in group) / n
    n_groups = len(by_group)
    # Σ (d − mean) of a group, as one exactly rounded sum: the order of its cases changes no digit.
    off = [math.fsum([*group, -mean * len(group)]) for group in by_group]
    return math.sqrt(n_groups / (n_groups - 1) * math.fsum(each**2 for each in off)) / n
