"""Repeats of which some are an earlier one given again, simulated: what the rule of copies does (docs/verdict.md).

Sides are as in `simulated`; a case has one text for each score, which is the hardest to tell. With logprobs every
answer that was computed has bits of its own. Which repeats are copies of which is a row of numbers: (0, 1, 1, 1, 1) is
a cold answer and four copies of the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.simulated import (
    BATCHED,
    MINUS,
    SEED,
    Pair,
    Regime,
    Scores,
    change_cases,
    draw_chances,
    draw_repeats,
    judge,
)
from evalboard.contract.run import Draws
from evalboard.core.stats import Marks, SideAnswers, effective_draws, find_case_outcomes, read_draws

DRAWS = (0, 1, 2, 3, 4)
NAMES = {
    DRAWS: "5 draws",
    (0, 1, 2, 3, 3): "2 copies among them",
    (0, 0, 1, 1, 2): "3 distinct",
    (0, 1, 1, 1, 1): "1 cold, 4 copies",
    (0, 0, 0, 0, 0): "5 copies",
}
UNSTABLE = (BATCHED.unstable, 0.03, 0.01)  # shares of cases
SIZES, HONEST = (60, 200, 800), (0.01, 0.03, 0.1)


@dataclass(frozen=True, eq=False)
class CopiedPair(Pair):
    """is_changed: bool[n], the cases that were changed for good."""

    is_changed: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))


def copied_pairs(
    n: int,
    pattern: tuple[int, ...],
    *,
    unstable: float,
    n_cases: int = 800,
    difference: float = 0.0,
    has_logprobs: bool = False,
    has_second_run: bool = False,
    seed: int = SEED,
) -> Iterator[CopiedPair]:
    """Yield n pairs whose repeats are copies by this pattern, marked by the rule."""
    rng = np.random.default_rng(seed)
    regime = Regime("external", unstable)
    for _ in range(n):
        chances = draw_chances(rng, regime, n_cases)
        changed = change_cases(rng, chances, round(-difference * n_cases / 100), churn=0.02)
        sides, marks = [], []
        for each in (chances, changed):
            drawn = draw_repeats(rng, each, regime, max(pattern) + 1)
            second = draw_repeats(rng, each, regime, 1) if has_second_run else None
            scores = drawn[:, list(pattern)]
            sides.append(scores)
            marks.append(_mark(scores, pattern, second, has_logprobs=has_logprobs))
        yield CopiedPair(sides[0], sides[1], difference, marks[0], marks[1], chances != changed)


def _mark(scores: Scores, pattern: tuple[int, ...], second: Scores | None, *, has_logprobs: bool) -> Marks:
    bits = np.broadcast_to(np.array(pattern) + 1, scores.shape) if has_logprobs else np.zeros(scores.shape)
    side = SideAnswers(
        texts=_digests(scores + 1),
        traces=_digests(bits),
        is_there=np.ones(scores.shape, np.bool_),
        marks=np.zeros(scores.shape, np.uint8),
        draws=Draws(is_external=True),
        is_steady=False,
        usual=None if second is None else _digests(second + 1),
    )
    return effective_draws(side).marks


def _digests(numbers: Scores) -> NDArray[np.uint64]:
    return np.stack([numbers, numbers], axis=2).astype(np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRates:
    """Shares of the pairs: that ship, are refused for copies; of the marks, the share that is chance."""

    ships: float
    refused: float
    chance_marks: float


def measure_rates(
    n: int, pattern: tuple[int, ...], *, unstable: float, has_logprobs: bool, seed: int = SEED
) -> CopyRates:
    """Measure n pairs of 800 cases with a true change of −1."""
    ships = refused = 0
    marks = []
    known: dict[str, Any] = {"unstable": unstable, "has_logprobs": has_logprobs, "seed": seed}
    for pair in copied_pairs(n, pattern, difference=-1.0, **known):
        verdict = judge(pair)
        ships += verdict.verdict == "ship"
        refused += any(line.code == "copies" for line in verdict.reasons)
        sides = ((pair.baseline, pair.marks_baseline), (pair.candidate, pair.marks_candidate))
        ours, theirs = (read_draws(*side).scores for side in sides)
        is_marked = find_case_outcomes(ours, theirs).is_beyond_chance
        n_chance = int(np.count_nonzero(is_marked & ~pair.is_changed))
        marks.append(n_chance / max(int(np.count_nonzero(is_marked)), 1))
    return CopyRates(ships=ships / n, refused=refused / n, chance_marks=float(np.mean(marks)))


def measure_refused(
    n: int, *, n_cases: int, unstable: float, has_logprobs: bool, has_second_run: bool, seed: int = SEED
) -> float:
    """Return the share of n honest pairs with no change of which a side has fewer than its five draws."""
    known: dict[str, Any] = {"n_cases": n_cases, "unstable": unstable, "has_logprobs": has_logprobs, "seed": seed}
    refused = 0
    for pair in copied_pairs(n, DRAWS, has_second_run=has_second_run, **known):
        sides = ((pair.baseline, pair.marks_baseline), (pair.candidate, pair.marks_candidate))
        refused += min(read_draws(*side).n_draws for side in sides) < len(DRAWS)
    return refused / n


def tables(n: int) -> list[str]:
    """Return the two tables of docs/verdict.md, of n pairs for each row."""
    lines = [
        f"| {n:,} pairs each, 800 cases, true change of {MINUS}1, paired, at k = 5 | ship, at most 6 % | "
        "refused: copies | marks that are chance, at most 10 % |",
        "| --- | --- | --- | --- |",
    ]
    for unstable in UNSTABLE:
        for has_logprobs in (False, True):
            for pattern, name in NAMES.items():
                rates = measure_rates(n, pattern, unstable=unstable, has_logprobs=has_logprobs)
                how = f"{100 * unstable:g} % unstable, {'logprobs' if has_logprobs else 'text only'}: {name}"
                shares = (rates.ships, rates.refused, rates.chance_marks)
                lines.append(f"| {how} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |")
    lines += [
        "",
        f"| {n:,} pairs each of 5 draws a side, no change: refused for copies | text only | text only, a second run | "
        "logprobs |",
        "| --- | --- | --- | --- |",
    ]
    for n_cases in SIZES:
        for unstable in HONEST:
            known: dict[str, Any] = {"n_cases": n_cases, "unstable": unstable}
            refused = (
                measure_refused(n, has_logprobs=has_logprobs, has_second_run=has_second_run, **known)
                for has_logprobs, has_second_run in ((False, False), (False, True), (True, False))
            )
            columns = " | ".join(f"{100 * share:.1f} %" for share in refused)
            lines.append(f"| {n_cases} cases, {100 * unstable:g} % unstable | {columns} |")
    return lines
