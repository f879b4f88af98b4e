"""How often noise alone moves a difference by no more than is said of it: the second table of docs/divergence.md.

Pairs of runs as in `simulated`. Of a pair whose true change is known, what the difference has beyond it is noise alone.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.simulated import BATCHED, CHURN, PINNED, SHIFTED, Regime, pairs
from evalboard.core.stats import NOISE_LEVEL, difference_points, measure_noise_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """is_steady: the baseline's repeats are one draw, the same to the bit. difference: the true one, in points.

    n_causes: nothing but noise moved the cases, which are dealt to so many causes, and the points of one are measured;
    0 for the whole difference.
    at_least: the share promised, None for what is only told.
    """

    name: str
    regime: Regime
    repeats: int = 5
    n_cases: int = 800
    difference: float = 0.0
    is_steady: bool = False
    n_causes: int = 0
    at_least: float | None = NOISE_LEVEL

    def covers(self, baseline: NDArray[np.float64], candidate: NDArray[np.float64]) -> tuple[bool, float]:
        """Whether noise moved the difference by no more than is said, and what is said."""
        if self.is_steady:
            baseline = np.repeat(baseline[:, :1], self.repeats, axis=1)
        share = 1.0
        if self.n_causes:
            is_changed = (np.hstack([baseline, candidate]) != baseline[:, :1]).any(axis=1)
            of_one = np.flatnonzero(is_changed)[:: self.n_causes]
            share = len(of_one) / len(baseline)
            baseline, candidate = baseline[of_one], candidate[of_one]
        up_to = measure_noise_share(baseline, candidate, is_one_draw=(self.is_steady, False)).up_to
        assert up_to is not None
        return bool(abs(difference_points(baseline, candidate) - self.difference) <= up_to), share * up_to

    def measure(self, n: int) -> tuple[float, float]:
        """Return in which share of n pairs noise moved the difference by no more, and the median of what is said"""
        churn = 0.0 if self.n_causes else CHURN
        made = pairs(n, self.regime, difference=self.difference, churn=churn, k=self.repeats, n_cases=self.n_cases)
        covered, said = zip(*(self.covers(pair.baseline, pair.candidate) for pair in made), strict=True)
        return float(np.mean(covered)), float(np.median(said))


SITUATIONS = (
    Situation(name="few flips (0.6 % of the cases can)", regime=PINNED),
    Situation(name="batched, no change", regime=BATCHED),
    Situation(name="batched, true change of −1", regime=BATCHED, difference=-1.0),
    Situation(name="batched, 2 repeats", regime=BATCHED, repeats=2),
    Situation(name="batched, 100 cases", regime=BATCHED, n_cases=100),
    Situation(name="a steady side against a batched one", regime=BATCHED, is_steady=True),
    Situation(name="batched, no change, one of two causes", regime=BATCHED, n_causes=2),
    Situation(name="batched, no change, one of ten causes", regime=BATCHED, n_causes=10),
    Situation(name="whole runs shifted by 0.7 points", regime=SHIFTED, at_least=0.93),
    Situation(
        name="a steady side against whole runs shifted by 0.7 points", regime=SHIFTED, is_steady=True, at_least=0.93
    ),
    # Two repeats cannot tell that runs move as a whole.
    Situation(name="whole runs shifted by 0.7 points, 2 repeats", regime=SHIFTED, repeats=2, at_least=None),
)
