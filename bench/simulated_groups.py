"""Suites of templates, simulated: how often the interval for other cases like these covers the true change there.

Groups are drawn from a population of groups. In a share of them, the sensitive ones, each case breaks with one chance
and is fixed with another; in the others nothing moves. The true change is that of the population, known exactly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.simulated import SEED
from evalboard.core.release.reach import find_reach

SIZE = 10  # cases of an average group
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsClaim:
    """How often the 90 % interval covers the change. broken, fixed: chances in a sensitive group.

    largest: how many times as large as the others the first group is. is_graded: cases move by a third, not by 1.
    """

    n_groups: int
    sensitive: float
    broken: float
    fixed: float
    largest: int = 1
    is_graded: bool = False
    at_least: float | None = 0.90

    @property
    def situation(self) -> str:
        size = "" if self.largest == 1 else f", one of them {self.largest} times as large"
        moves = f"{100 * self.broken:g} % of its cases break and {100 * self.fixed:g} % are fixed"
        how = " by a third" if self.is_graded else ""
        return f"{self.n_groups} groups{size}; in {100 * self.sensitive:g} % of groups {moves}{how}"

    @property
    def aim(self) -> str:
        return "" if self.at_least is None else f"at least {100 * self.at_least:g} %"

    def measure(self, n: int, *, seed: int = SEED) -> float:
        rng = np.random.default_rng(seed)
        step = 1 / 3 if self.is_graded else 1.0
        true = 100 * step * self.sensitive * (self.fixed - self.broken)
        sizes = [SIZE * self.largest, *[SIZE] * (self.n_groups - 1)]
        groups = [f"g{group}" for group, size in enumerate(sizes) for _ in range(size)]
        n_covered = 0
        for _ in range(n):
            moves = step * np.concatenate([self._draw_group(rng, size) for size in sizes])
            reach = find_reach(moves, groups, is_graded=self.is_graded)
            n_covered += reach is not None and reach.low <= true <= reach.high
        return n_covered / n

    def _draw_group(self, rng: np.random.Generator, size: int) -> Numbers:
        if rng.random() >= self.sensitive:
            return np.zeros(size)
        at = rng.random(size)
        return (at < self.fixed).astype(np.float64) - (at > 1 - self.broken)


CLAIMS = (
    *(
        GroupsClaim(n_groups=n, sensitive=sensitive, broken=broken, fixed=fixed)
        for n in (10, 20, 40, 80)
        for sensitive, broken, fixed in ((0.05, 0.9, 0.0), (0.1, 0.5, 0.1), (0.3, 0.3, 0.3))
    ),
    GroupsClaim(n_groups=20, sensitive=0.1, broken=0.5, fixed=0.1, is_graded=True, at_least=None),
    *(
        GroupsClaim(n_groups=20, sensitive=0.1, broken=0.9, fixed=0.0, largest=largest, at_least=None)
        for largest in (5, 20)
    ),
)


def table(n: int) -> list[str]:
    """The measured table of docs/verdict.md, of n suites for each row."""
    return [
        f"| {n:,} suites each, {SIZE} cases in a group | the 90 % interval covers it | promised |",
        "| --- | --- | --- |",
        *(f"| {claim.situation} | {100 * claim.measure(n):.1f} % | {claim.aim} |" for claim in CLAIMS),
    ]
