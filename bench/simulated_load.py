"""Two batched runs whose load differs, simulated: what that does to a verdict, and how often the rule sees it.

In the unstable cases a response passes where margin + load effect + noise is above 0. A case's load effect is a
function of the load alone, of so much variance beside the noise's as `effect` says; both models have it alike. Two
loads a quarter turn apart have nothing in common. A wandering load moves by a normal step between two repeats.

Runs that wander as a whole move by an autoregressive shift instead (AR(1)): each repeat's shift is rho times that of
the repeat that ended before it, and a fresh part.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bench.simulated import (
    BATCHED,
    MINUS,
    N_CASES,
    PAIRED,
    SEED,
    Pair,
    change_cases,
    draw_chances,
    draw_repeats,
    follow,
    judge,
    shift_repeat,
)
from evalboard.core.stats import SizeCounts, find_load_difference, order_in_turn

LOADS = ("one load", "unlike loads", "a wandering load, one side after the other", "a wandering load, in turn")
STEP = 0.5  # of a wandering load from repeat to repeat, in radians
N_RESPONSES = 800  # of each repeat, in the simulated batch sizes

Phases = NDArray[np.float64]


def pairs(n: int, load: str, effect: float, *, difference: float, k: int, seed: int = SEED) -> Iterator[Pair]:
    """n pairs of runs of k repeats, each of a suite of its own; difference: the true one, the load's part aside."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        chances = (rng.random(N_CASES) < 0.8).astype(np.float64)
        unstable = rng.permutation(N_CASES)[: rng.binomial(N_CASES, BATCHED.unstable)]
        changed = change_cases(rng, np.delete(chances, unstable), round(-difference * N_CASES / 100))
        margins, waves = rng.normal(size=len(unstable)), rng.normal(size=(2, len(unstable)))
        sides = []
        for stable, phases in zip((np.delete(chances, unstable), changed), _phases(rng, load, k), strict=True):
            effects = waves[0][:, None] * np.cos(phases) + waves[1][:, None] * np.sin(phases)
            passing = special.ndtr(margins[:, None] + np.sqrt(effect) * effects)
            near = rng.random((len(unstable), k)) < passing
            sides.append(np.vstack([np.repeat(stable[:, None], k, axis=1), near]).astype(np.float64))
        yield Pair(sides[0], sides[1], difference)


def _phases(rng: np.random.Generator, load: str, k: int) -> tuple[Phases, Phases]:
    """Return the load at each repeat of both sides."""
    if load == LOADS[0]:
        return np.zeros(k), np.zeros(k)
    if load == LOADS[1]:
        return np.zeros(k), np.full(k, np.pi / 2)
    return _by_side(np.cumsum(rng.normal(0, STEP, 2 * k)), is_in_turn=load == LOADS[3])


def _by_side(values: Phases, *, is_in_turn: bool) -> tuple[Phases, Phases]:
    """Return what each side's repeats met of the values of all, in the order in which they ended."""
    k = len(values) // 2
    order = [side for side, _ in order_in_turn([k, k])] if is_in_turn else [0] * k + [1] * k
    is_baseline = np.array(order) == 0
    return values[is_baseline], values[~is_baseline]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadClaim:
    """How often a candidate exactly at the tolerance ships; at_most: what is promised, None for what is only told."""

    load: str
    effect: float
    look: int | None
    at_most: float | None = None

    @property
    def situation(self) -> str:
        when = f"at k = {self.look}" if self.look else "by k = 20"
        share = round(100 * self.effect / (1 + self.effect))
        return f"batched, {share} % of its variance the load's, {self.load}, true change of {MINUS}1, {when}"

    @property
    def aim(self) -> str:
        return "" if self.at_most is None else f"at most {100 * self.at_most:g} %"

    def measure(self, n: int, *, seed: int = SEED) -> float:
        made = pairs(n, self.load, self.effect, difference=-1.0, k=self.look or PAIRED.looks[-1], seed=seed)
        verdicts = (judge(pair) if self.look else follow(pair) for pair in made)
        return sum(verdict.verdict == "ship" for verdict in verdicts) / n


PROMISED = {LOADS[0]: 0.06, LOADS[3]: 0.06}
CLAIMS = tuple(
    LoadClaim(load=load, effect=effect, look=look, at_most=PROMISED.get(load))
    for effect in (1.0, 9.0)
    for load in LOADS
    for look in (5, None)
)


ORDERS = ("one side after the other, at unknown hours", "one side after the other", "in turn")


@dataclass(frozen=True, slots=True, kw_only=True)
class WanderingClaim:
    """How often a candidate exactly at the tolerance ships where whole runs wander: AR(1) with this standard deviation.

    sd: in points. rho: what of a shift is left one repeat later.
    """

    sd: float
    rho: float
    order: str
    look: int | None
    at_most: float | None = None

    @property
    def situation(self) -> str:
        when = f"at k = {self.look}" if self.look else "by k = 20"
        moved = f"whole runs wander by {self.sd:g} points (AR(1), {self.rho:g})"
        return f"batched, {moved}, {self.order}, true change of {MINUS}1, {when}"

    @property
    def aim(self) -> str:
        return "" if self.at_most is None else f"at most {100 * self.at_most:g} %"

    def measure(self, n: int, *, seed: int = SEED) -> float:
        are_apart = self.order == ORDERS[1]
        made = self._pairs(n, self.look or PAIRED.looks[-1], seed)
        verdicts = (
            judge(pair, are_apart=are_apart) if self.look else follow(pair, are_apart=are_apart) for pair in made
        )
        return sum(verdict.verdict == "ship" for verdict in verdicts) / n

    def _pairs(self, n: int, k: int, seed: int) -> Iterator[Pair]:
        rng = np.random.default_rng(seed)
        for _ in range(n):
            chances = draw_chances(rng, BATCHED, N_CASES)
            changed = change_cases(rng, chances, N_CASES // 100)
            shifts = rng.normal(0, self.sd, 2 * k)
            for repeat in range(1, 2 * k):
                shifts[repeat] = self.rho * shifts[repeat - 1] + np.sqrt(1 - self.rho**2) * shifts[repeat]
            sides = [draw_repeats(rng, each, BATCHED, k) for each in (chances, changed)]
            for scores, own in zip(sides, _by_side(shifts, is_in_turn=self.order == ORDERS[2]), strict=True):
                for repeat, points in enumerate(own.tolist()):
                    shift_repeat(rng, scores, repeat, points)
            yield Pair(sides[0], sides[1], -1.0)


WANDERING_CLAIMS = tuple(
    WanderingClaim(sd=sd, rho=rho, order=order, look=look, at_most=0.06 if order == ORDERS[2] else None)
    for sd, rho in ((0.7, 0.8), (1.5, 0.8), (1.5, 0.95))
    for look in (5, None)
    for order in ORDERS
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenClaim:
    """How often `load_differs` is said of batches whose mean is `factor` times as large on one side.

    scatter: standard deviation of log batch size between repeats.
    """

    factor: float
    scatter: float
    k: int
    at_most: float | None = None
    at_least: float | None = None

    @property
    def situation(self) -> str:
        load = "one load" if self.factor == 1 else f"batches {self.factor:g} times as large on one side"
        return f"{load}, repeats scatter by {100 * self.scatter:g} %, {self.k} a side"

    @property
    def aim(self) -> str:
        return f"at most {100 * self.at_most:g} %" if self.at_most is not None else _at_least(self.at_least)

    def measure(self, n: int, *, seed: int = SEED) -> float:
        rng = np.random.default_rng(seed)
        seen = (
            find_load_difference(self._side(rng, 12.0), self._side(rng, 12.0 * self.factor)) is not None
            for _ in range(n)
        )
        return sum(seen) / n

    def _side(self, rng: np.random.Generator, mean: float) -> Sequence[SizeCounts]:
        """Return the sizes of each repeat: what shares a step scatters by repeat, and within it from step to step."""
        levels = mean * np.exp(rng.normal(0, self.scatter, self.k))
        return [Counter((1 + rng.poisson(level, N_RESPONSES)).tolist()) for level in levels]


SEEN_CLAIMS = (
    *(SeenClaim(factor=1.0, scatter=scatter, k=k, at_most=0.01) for scatter in (0.1, 0.5, 1.0) for k in (5, 20)),
    SeenClaim(factor=2.0, scatter=0.1, k=5, at_least=0.99),
    SeenClaim(factor=2.0, scatter=0.3, k=5, at_least=0.4),
    SeenClaim(factor=4.0, scatter=0.3, k=5, at_least=0.99),
)


def tables(n: int) -> list[str]:
    """The measured tables of docs/verdict.md, of n pairs for each row."""
    return [
        f"| {n:,} pairs each, 800 cases, tolerance 1.0 | says | measured | promised |",
        "| --- | --- | --- | --- |",
        *(f"| {claim.situation} | ship | {100 * claim.measure(n):.1f} % | {claim.aim} |" for claim in CLAIMS),
        "",
        f"| {n:,} pairs of runs each, of {N_RESPONSES} responses a repeat | `load_differs` | promised |",
        "| --- | --- | --- |",
        *(f"| {claim.situation} | {100 * claim.measure(n):.1f} % | {claim.aim} |" for claim in SEEN_CLAIMS),
    ]


def table_of_wandering(n: int) -> list[str]:
    """The table of whole runs that wander, of n pairs for each row."""
    return [
        f"| {n:,} pairs each, 800 cases, tolerance 1.0 | says | measured | promised |",
        "| --- | --- | --- | --- |",
        *(f"| {claim.situation} | ship | {100 * claim.measure(n):.1f} % | {claim.aim} |" for claim in WANDERING_CLAIMS),
    ]


def _at_least(share: float | None) -> str:
    return "" if share is None else f"at least {100 * share:g} %"
