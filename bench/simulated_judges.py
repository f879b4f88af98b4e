"""Judges, simulated, and what is said of them: the error rates of docs/suites.md ("How a judge is measured").

A judge takes a right answer for right with one chance and a wrong one with another, each time anew. Anchors are 50
answers, 60 % of them right. A *graded* judge gives marks from 0 to 4, as fractions. For verdicts the suite and its
noise are `BATCHED` of bench/simulated.py, of which each response is judged on its own.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.simulated import (
    BATCHED,
    N_CASES,
    PAIRED,
    SETTLED,
    Pair,
    Promise,
    change_cases,
    draw_chances,
    draw_repeats,
    follow,
)
from evalboard.core.stats import anchor_shift, corrected_rate, judge_noise, plan_anchor_draws

SEED = 20261129
N_ANCHORS, DRIFT, N_FIRST_DRAWS = 50, 0.05, 3  # the noise is measured by three judgements of each of 50 answers
WILD = 0.27  # the share of answers on which a judge disagrees with itself

Scores = NDArray[np.float64]
Holds = Callable[[np.random.Generator], bool]


@dataclass(frozen=True, slots=True)
class SimulatedJudge:
    """Chances to take a right and a wrong answer for right. steps: of its marks; 1 for right and wrong."""

    name: str
    right: float
    wrong: float
    steps: int = 1

    def judge(self, rng: np.random.Generator, is_right: NDArray[np.bool_], draws: int = 1) -> Scores:
        """Return float64[n, draws]."""
        return draw_marks(rng, np.where(is_right, self.right, self.wrong), draws, self.steps)


def draw_marks(rng: np.random.Generator, chances: Scores, draws: int, steps: int = 1) -> Scores:
    return rng.binomial(steps, chances[:, None], (len(chances), draws)) / steps


def flip_chance(disagreement: float) -> float:
    """Return the chance that a judgement is wrong, where two of them differ so often."""
    return (1 - math.sqrt(1 - 2 * disagreement)) / 2


def fickle(name: str, disagreement: float) -> SimulatedJudge:
    chance = flip_chance(disagreement)
    return SimulatedJudge(name, 1 - chance, chance)


CORRECTED = (
    (SimulatedJudge("a lenient judge", 0.97, 0.3), 0.8),
    (SimulatedJudge("a strict judge", 0.7, 0.02), 0.6),
    (SimulatedJudge("a judge with 1 % of errors", 0.99, 0.01), 0.8),
    (SimulatedJudge("a lenient judge of few wrong answers", 0.95, 0.3), 0.97),
    (SimulatedJudge("a judge that knows nothing", 0.7, 0.7), 0.5),
    (SimulatedJudge("a graded judge", 0.8, 0.3, steps=4), 0.7),
)
STEADY = SimulatedJudge("a judge that never differs", 1.0, 0.0)
CALM, FICKLE = fickle("a judge that differs on 3.2 %", 0.032), fickle("a judge that differs on 10 %", 0.1)
WILD_JUDGE = fickle("a judge that differs on 27 %", WILD)
GRADED = SimulatedJudge("a graded judge", 0.9, 0.2, steps=4)


def covers(rng: np.random.Generator, judge: SimulatedJudge, passing: float, n_labels: int, n: int = 1000) -> bool:
    """Tell whether the interval has the rate that labels of all answers give."""
    is_right = rng.random(n) < passing
    labels = is_right.astype(np.float64)
    labels[rng.permutation(n)[n_labels:]] = np.nan
    interval = corrected_rate(judge.judge(rng, is_right)[:, 0], labels).interval
    return (
        interval is not None
        and interval[0] <= 100 * is_right.mean() + 1e-9
        and 100 * is_right.mean() - 1e-9 <= interval[1]
    )


def moves(rng: np.random.Generator, judge: SimulatedJudge, drift: float) -> bool:
    """Tell whether the judge is said to have moved, by as many draws of its anchors as were planned."""
    is_right = rng.random(N_ANCHORS) < 0.6
    chances = np.where(is_right, judge.right, judge.wrong)
    draws = plan_anchor_draws(judge_noise(judge.judge(rng, is_right, N_FIRST_DRAWS)), N_ANCHORS)
    room = 1 - chances  # those that can rise do, in proportion
    moved = chances + drift * N_ANCHORS * room / room.sum()
    before, after = (draw_marks(rng, each, draws, judge.steps) for each in (chances, moved))
    shift = anchor_shift(before, after)
    return shift is not None and shift.has_moved


def judged_pairs(n: int, *, is_exact: bool = False, n_broken: int = 0, k: int = 20, seed: int = SEED) -> Iterator[Pair]:
    """Pairs of runs that the wild judge scored. is_exact: by an exact scorer, of responses that are as noisy."""
    rng, error = np.random.default_rng([seed, is_exact]), flip_chance(WILD)
    for _ in range(n):
        chances = draw_chances(rng, BATCHED, N_CASES)
        sides = []
        for each in (chances, change_cases(rng, chances, n_broken)):
            if is_exact:
                sides.append(draw_repeats(rng, each * (1 - error) + (1 - each) * error, BATCHED, k))
            else:
                is_right = draw_repeats(rng, each, BATCHED, k)
                sides.append(np.abs(is_right - (rng.random(is_right.shape) < error)))
        yield Pair(sides[0], sides[1], -100 * n_broken / N_CASES * (1 - 2 * error))


def decide(n: int, *, is_exact: bool = False, n_broken: int = 0, seed: int = SEED) -> list[str]:
    """Return the verdicts on n pairs, each at the first look that decides it."""
    made = judged_pairs(n, is_exact=is_exact, n_broken=n_broken, seed=seed)
    return [follow(pair, PAIRED).verdict for pair in made]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeClaim(Promise):
    """An error rate that docs/suites.md promises."""

    holds: Holds
    n_in_tests: int = 400

    def measure(self, n: int) -> float:
        """Return the share of n simulated situations in which it holds."""
        return sum(self.holds(np.random.default_rng([SEED, index])) for index in range(n)) / n


CLAIMS = (
    *(
        JudgeClaim(
            situation=f"{judge.name}, {100 * passing:g} % pass, {n_labels} labels of 1,000 answers",
            says="the interval has the true rate",
            holds=partial(covers, judge=judge, passing=passing, n_labels=n_labels),
            at_least=0.93,
        )
        for judge, passing in CORRECTED
        for n_labels in (40, 200)
    ),
    *(
        JudgeClaim(
            situation=f"{judge.name}, and did not move",
            says="moved",
            holds=partial(moves, judge=judge, drift=0.0),
            n_in_tests=1000,  # fewer do not tell 1 % from a rate near it
            at_most=0.01,
        )
        for judge in (STEADY, CALM, FICKLE, WILD_JUDGE, replace(GRADED, name="a graded judge of five marks"))
    ),
    *(
        JudgeClaim(
            situation=f"{judge.name}, drift of 5 points",
            says="moved",
            holds=partial(moves, judge=judge, drift=DRIFT),
            n=200 if judge.steps == 1 else 100,
            n_in_tests=400 if judge.steps == 1 else 100,
            at_least=0.95,
        )
        for judge in (STEADY, CALM, FICKLE, replace(GRADED, name="a graded judge of five marks"))
    ),
    JudgeClaim(
        situation=f"{WILD_JUDGE.name}, drift of 5 points, where 40 draws are too few",
        says="moved",
        holds=partial(moves, judge=WILD_JUDGE, drift=DRIFT),
        n=200,
    ),
)


def _say(verdicts: list[str]) -> str:
    shares = [sum(each in words for each in verdicts) / len(verdicts) for words in (("ship",), ("no_ship",), SETTLED)]
    return " | ".join(f"{100 * share:.1f} %" for share in shares)


def table(n_pairs: int) -> list[str]:
    """Return the lines of both tables."""
    lines = ["| situation | says | measured | of | promised |", "| --- | --- | --- | --- | --- |"]
    for claim in CLAIMS:
        share = claim.measure(claim.n)
        lines.append(f"| {claim.situation} | {claim.says} | {100 * share:.1f} % | {claim.n:,} | {claim.aim} |")
    lines += ["", f"| {n_pairs:,} pairs of runs, by k = 20 | ship | no-ship | decided |", "| --- | --- | --- | --- |"]
    for n_broken, change in ((0, "nothing changed"), (12, "a drop of 1.0 as judged, the tolerance")):
        for is_exact, scorer in ((False, WILD_JUDGE.name), (True, "an exact scorer, responses as noisy")):
            lines.append(f"| {scorer}, {change} | {_say(decide(n_pairs, is_exact=is_exact, n_broken=n_broken))} |")
    return lines
