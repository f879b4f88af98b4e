"""Estimate the change on other cases like these. Repeats do not narrow that interval; more cases do."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.release import ReachInterval
from evalboard.core.stats import ELSEWHERE_ALPHA, POWER, normal_quantile, student_quantile

LEVEL = 0.9
FEW_GROUPS = 10  # fewer than these, or a change in fewer of them, say nothing about other cases
UNEVEN = 5.0  # times the median: with a larger group than that it was not measured how often the interval holds
SMALLEST_MOVE = 0.1  # of graded scores, by which a group may yet move where none did

Moves = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Estimate:
    """The centre of an interval, half of its width, and the standard error behind it; as fractions."""

    centre: float
    half: float
    se: float


def find_reach(moves: Moves, groups: Sequence[str], *, is_graded: bool = False) -> ReachInterval | None:
    """Return the interval for new cases. moves: float64[n], each case's change; groups: "" for none.

    Two cases are added, one that is fixed and one that is broken, which keeps the interval honest for few cases and
    for none that changed. Cases of one group are drawn together: their changes count as one, and two groups are added
    likewise; the widest of these intervals is returned. is_graded: some score lies between 0 and 1; the added groups
    then move as far as the case that moved furthest. None for one case, and where cases are of fewer groups than
    FEW_GROUPS: nothing then says how others would do.
    """
    by_group = _by_group(moves, groups)
    n, n_groups = len(moves), len(by_group)
    is_grouped = n_groups < n
    if n_groups < (FEW_GROUPS if is_grouped else 2):
        return None
    centre = math.fsum(moves.tolist()) / (n + 2)
    squares = math.fsum(((moves - centre) ** 2).tolist()) + (1 - centre) ** 2 + (1 + centre) ** 2
    alone = math.sqrt(squares / (n + 1) / (n + 2))
    grouped = _se_of_groups(by_group, n) if is_grouped else alone
    se = max(alone, grouped)
    widest = _Estimate(centre, _quantile(n_groups - 1 if is_grouped else n + 1) * se, se)
    if is_grouped:
        added = _add_groups(by_group, n, max(float(np.abs(moves).max()), SMALLEST_MOVE) if is_graded else 1.0)
        widest = max(widest, added, key=lambda each: each.half)
    n_changed = sum(any(group) for group in by_group)
    sizes = [len(group) for group in by_group]
    return ReachInterval(
        low=max(100 * (widest.centre - widest.half), -100.0),
        high=min(100 * (widest.centre + widest.half), 100.0),
        level=LEVEL,
        n_groups=n_groups,
        n_groups_changed=n_changed,
        design_effect=(grouped / alone) ** 2,
        is_concentrated=is_grouped and 0 < n_changed < FEW_GROUPS,
        is_uneven=is_grouped and max(sizes) > UNEVEN * median(sizes),
        resolution_points=100 * (normal_quantile(1 - ELSEWHERE_ALPHA) + normal_quantile(POWER)) * widest.se,
    )


def count_groups(groups: Sequence[str]) -> int | None:
    """Return the number of groups, counting a case without one as its own; None without shared groups."""
    n_groups = len({group for group in groups if group}) + sum(not group for group in groups)
    return n_groups if n_groups < len(groups) else None


def _quantile(df: int) -> float:
    return student_quantile((1 + LEVEL) / 2, df)


def _add_groups(by_group: Sequence[Sequence[float]], n: int, move: float) -> _Estimate:
    """Return the interval with two added groups of average size, all rising and all falling."""
    n_groups = len(by_group)
    size = n / n_groups
    n_all = n + 2 * size
    centre = math.fsum(each for group in by_group for each in group) / n_all
    off = [math.fsum([*group, -centre * len(group)]) for group in by_group]
    off += [size * (move - centre), size * (-move - centre)]
    variance = (n_groups + 2) / (n_groups + 1) * math.fsum(each**2 for each in off) / n_all**2
    se = math.sqrt(variance)
    return _Estimate(centre, _quantile(n_groups + 1) * se, se)


def _by_group(moves: Moves, groups: Sequence[str]) -> list[list[float]]:
    """Return the moves by group; a case without one is its own group."""
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
