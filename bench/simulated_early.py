"""Leans before the second repeat, simulated: how often the interval by earlier runs and margins holds, and how wide it
is (docs/verdict.md, Noise before the second repeat).

A case has near ties along its answer. Each has a margin, in standard deviations of the noise, and at half of them the
score hangs on the choice. The candidate keeps the margins of half of the cases, and has others of its own in the rest.
Margins predict flips with a noise that is assumed to be three times the true one.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from bench.simulated import CHURN, MINUS, N_CASES, PASSING, SEED, Scores
from evalboard.core.release.evidence import LEAN_ALPHA
from evalboard.core.stats import (
    difference_points,
    estimate_early,
    make_estimate,
    measure_earlier,
    measure_noise,
)

ASSUMED = 3.0  # the noise that is reckoned with, in true ones
DECIDING = 0.5  # of the near ties
UNSTABLE = (0.006, 0.03, 0.112, 0.3)  # shares of cases as noisy as that share of the cases in bench.simulated
EARLIER = 10  # repeats of earlier runs
# A case of `simulated` that is unstable has a variance of 1/6 on average; a tie whose margin is spread evenly, over a
# length of one standard deviation, has 0.282.
VARIANCE, OF_TIE = 1 / 6, 1 / (2 * math.sqrt(math.pi))
TOLERANCE = 1.0


@dataclass(frozen=True, eq=False)
class Ties:
    """The near ties of a model's answers: the case of each, its margin, and whether the score hangs on it."""

    case: NDArray[np.int64]
    margin: Scores
    decides: NDArray[np.bool_]

    def predict(self, sd: float, *, all_ties: bool) -> Scores:
        """Return float64[n]: the chance of each case that another token comes at some tie, by noise of this size."""
        stays = np.log(ndtr(self.margin / sd)) * (self.decides | all_ties)
        return np.asarray(1 - np.exp(np.bincount(self.case, stays, minlength=N_CASES)))

    def where(self, is_in: NDArray[np.bool_]) -> "Ties":
        rows = is_in[self.case]
        return Ties(self.case[rows], self.margin[rows], self.decides[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlySituation:
    """unstable: of UNSTABLE. k: repeats a side. times: near ties of the candidate for each of the baseline's, where the
    two differ. grown: the noise of today's runs, in that of the earlier ones.
    """

    unstable: float
    k: int
    times: float = 1.0
    grown: float = 1.0

    @property
    def name(self) -> str:
        parts = [f"as noisy as {100 * self.unstable:g} % unstable", f"k = {self.k}"]
        parts += (
            [f"{self.times:g} times the near ties on the candidate in half of the cases"] if self.times != 1 else []
        )
        parts += [f"noise {self.grown:g} times that of the earlier runs"] if self.grown != 1 else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class EarlyRates:
    """Of pairs: how often there is an early lean; of these, the shares whose 90 % interval covers the true change and
    that lean to ship at a true change of -1; and half of each interval in points. *_now: of the lean without history.
    """

    known: float
    covers: float
    covers_now: float
    half: float
    half_now: float
    ships: float


def measure(situation: EarlySituation, n: int, *, seed: int = SEED) -> EarlyRates:
    """Measure n pairs with no change but churn; of each the candidate that is worse by 1 point leans as well."""
    rng = np.random.default_rng(seed)
    rows = [_judge(rng, situation) for _ in range(n)]
    known = [row for row in rows if row is not None]
    means = np.mean(known, axis=0).tolist() if known else [math.nan] * 5
    return EarlyRates(len(known) / n, *means)


def _judge(rng: np.random.Generator, situation: EarlySituation) -> tuple[float, ...] | None:
    per_length = situation.unstable * VARIANCE / (OF_TIE * DECIDING)
    ours = _draw_ties(rng, per_length)
    is_same = rng.random(N_CASES) < 0.5
    same, new = ours.where(is_same), _draw_ties(rng, per_length * situation.times).where(~is_same)
    theirs = Ties(*(np.concatenate([getattr(side, name) for side in (same, new)]) for name in Ties.__annotations__))
    usual = (rng.random(N_CASES) < PASSING).astype(np.float64)
    changed = usual.copy()
    for score in (0.0, 1.0):
        cases = rng.permutation(np.flatnonzero(usual == score))[: round(CHURN * N_CASES / 2)]
        changed[cases] = 1 - score
    now, now_too = (side.predict(situation.grown, all_ties=False) for side in (ours, theirs))
    baseline, candidate = _draw(rng, usual, now, situation.k), _draw(rng, changed, now_too, situation.k)
    earlier = _draw(rng, usual, ours.predict(1.0, all_ties=False), EARLIER)
    chances, chances_too = (side.predict(ASSUMED, all_ties=True).astype(np.float32) for side in (ours, theirs))
    true = 100 * float(np.mean(_expect(changed, now_too) - _expect(usual, now)))
    difference, measured = difference_points(baseline, candidate), measure_noise(baseline, candidate)
    before = measure_earlier(earlier, chances), measure_earlier(np.zeros((N_CASES, 0)), chances_too)
    early = estimate_early(difference, measured, *before)
    if early is None:
        return None
    half = early.half_width(LEAN_ALPHA)
    half_now = make_estimate(difference, measured).half_width(LEAN_ALPHA)
    off = difference - true  # so far from a true change of any size
    return abs(off) <= half, abs(off) <= half_now, half, half_now, off - TOLERANCE - half > -TOLERANCE


def _draw_ties(rng: np.random.Generator, per_length: float) -> Ties:
    length = 4 * ASSUMED
    case = np.repeat(np.arange(N_CASES), rng.poisson(per_length * length, N_CASES))
    return Ties(case, length * rng.random(len(case)), rng.random(len(case)) < DECIDING)


def _expect(usual: Scores, chances: Scores) -> Scores:
    return usual + (1 - 2 * usual) * chances


def _draw(rng: np.random.Generator, usual: Scores, chances: Scores, k: int) -> Scores:
    return (rng.random((len(usual), k)) < _expect(usual, chances)[:, None]).astype(np.float64)


SITUATIONS = (
    *(EarlySituation(unstable=share, k=k) for share in UNSTABLE for k in (1, 2)),
    *(EarlySituation(unstable=share, k=k, times=3) for share in UNSTABLE for k in (1, 2)),
    *(EarlySituation(unstable=share, k=k, times=0) for share in UNSTABLE[:3] for k in (1, 2)),
    *(EarlySituation(unstable=0.112, k=k, grown=2) for k in (1, 2)),
)
COVERS, SHIPS = 0.88, 0.06  # promised where the noise has not grown: at least, at most


def table(n: int) -> list[str]:
    """Return the table of docs/verdict.md, of n pairs for each row."""
    lines = [
        f"| {n:,} pairs each, 800 cases, {EARLIER} earlier repeats of the baseline | has an early lean "
        f"| its interval covers, at least {100 * COVERS:g} % | that of the usual lean | half of the early interval "
        f"| half of the usual one | leans to ship at a true change of {MINUS}1, at most {100 * SHIPS:g} % |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for each in SITUATIONS:
        rates = measure(each, n)
        shares = [f"{100 * share:.1f} %" for share in (rates.known, rates.covers, rates.covers_now)]
        widths = [f"{half:.2f}" for half in (rates.half, rates.half_now)]
        lines.append(f"| {each.name} | {' | '.join([*shares, *widths])} | {100 * rates.ships:.1f} % |")
    return lines
