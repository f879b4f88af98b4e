"""What is said of single cases that broke, held against what is known of them: the false discoveries among the marks.

Each pair of runs is of a suite of its own. What breaks for good passed always and passes afterwards never, or in one of
ten or two of ten repeats; all others move by chance alone.
"""

from dataclasses import dataclass

import numpy as np

from bench.simulated import BATCHED, N_CASES, PINNED, SEED, Regime, draw_chances, draw_repeats
from evalboard.core.stats import find_case_outcomes

AT_MOST = 0.10
LOW_CHANCES = (0.0, 0.0, 0.1, 0.2)  # of passing, of a case that broke for good
WILD = Regime("wild", 0.3)


@dataclass(frozen=True, slots=True)
class Broken:
    """Pairs of runs in which n_broken cases break for good."""

    regime: Regime
    k: int
    n_broken: int

    @property
    def name(self) -> str:
        return f"{self.regime.name}, k = {self.k}, {self.n_broken} broke for good"


@dataclass(frozen=True, slots=True)
class Marked:
    """What the marks were worth, over all pairs.

    false_share: the mean share of marks that are chance, 0 where there is none. power: of what broke for good and
    counts as broken, the share marked. n_by_chance, n_expected: cases that broke by chance, and how many it said.
    """

    false_share: float
    power: float
    n_by_chance: float
    n_expected: float


SITUATIONS = tuple(
    Broken(regime, k, n_broken) for regime in (PINNED, BATCHED, WILD) for k in (3, 5, 10) for n_broken in (0, 4, 16)
)


def measure(situation: Broken, n_pairs: int, *, seed: int = SEED) -> Marked:
    rng = np.random.default_rng(seed)
    false_shares, n_marked, n_counted, n_by_chance, n_expected = [], 0, 0, 0, 0.0
    for _ in range(n_pairs):
        chances = draw_chances(rng, situation.regime, N_CASES)
        changed = chances.copy()
        for_good = rng.permutation(np.flatnonzero(chances == 1))[: situation.n_broken]
        changed[for_good] = rng.choice(LOW_CHANCES, len(for_good))
        sides = [draw_repeats(rng, each, situation.regime, situation.k) for each in (chances, changed)]
        found = find_case_outcomes(*sides)
        is_for_good = np.isin(found.broken, for_good)
        is_marked = found.is_beyond_chance[found.broken]
        false_shares.append(np.count_nonzero(is_marked & ~is_for_good) / max(np.count_nonzero(is_marked), 1))
        n_marked += np.count_nonzero(is_marked & is_for_good)
        n_counted += np.count_nonzero(is_for_good)
        n_by_chance += np.count_nonzero(~is_for_good)
        n_expected += found.counts.broken_by_chance.n_expected if found.counts.broken_by_chance else 0.0
    return Marked(
        float(np.mean(false_shares)), n_marked / max(n_counted, 1), n_by_chance / n_pairs, n_expected / n_pairs
    )


def table(n_pairs: int) -> list[str]:
    """The measured table: false discoveries, power, and chance as it is said and as it was."""
    lines = [
        f"| {n_pairs:,} pairs each, {N_CASES} cases | marks that are chance | of the broken for good, marked"
        " | broke by chance | said to |",
        "| --- | --- | --- | --- | --- |",
    ]
    for situation in SITUATIONS:
        found = measure(situation, n_pairs)
        power = f"{100 * found.power:.0f} %" if situation.n_broken else ""
        lines.append(
            f"| {situation.name} | {100 * found.false_share:.1f} % | {power}"
            f" | {found.n_by_chance:.2f} | {found.n_expected:.2f} |"
        )
    return lines
