"""What a bisect blames where cases answer by chance: fields and cases are planted, each step's answers made up by that.

    python -m bench.simulated_bisects [TRIALS]

Prints the table of docs/lab.md.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalboard.contract.lab_kinds import StepAnswer
from evalboard.core.lab import (
    UNSTEADY_CASES,
    UNSTEADY_DECODINGS,
    Bisected,
    judge_steps,
    plan_more_steps,
    plan_steps,
    take_common,
)

FIELDS = ("attention", "batching", "dtype")
N_CASES, TRIALS, SEED = 12, 1000, 20261126
Step = frozenset[str]


@dataclass(frozen=True, slots=True)
class Planted:
    """What is true of a bisect. cause: the field that flips the cases which answer by no chance, "" where none does.

    n_chance: cases that either side answers at random in each decoding.
    """

    situation: str
    cause: str
    n_chance: int
    aim: str


SITUATIONS = (
    Planted("one field flips 8 cases, 4 are chance", "dtype", 4, "blamed wrongly at most 10 %, the cause in all"),
    Planted("no field does anything, 4 cases are chance and 8 never flip", "", 4, "blamed wrongly at most 10 %"),
    Planted("no field does anything, all 12 are chance", "", 12, "blamed wrongly at most 10 %"),
    Planted("one field flips all 12", "dtype", 0, "the cause in all"),
)


def bisect(planted: Planted, rng: np.random.Generator, *, decodings: int, min_cases: int) -> tuple[Bisected, int]:
    """Take every step that a bisect asks for; how it ends, and how often it decoded."""
    given: dict[Step, list[list[StepAnswer]]] = {}
    steps: Sequence[Step] = plan_steps(FIELDS)
    while steps:
        for step in steps:
            given[step] = [_decode(planted, step, rng) for _ in range(decodings)]
        steps = plan_more_steps(FIELDS, take_common(given), min_cases=min_cases)
    return judge_steps(FIELDS, take_common(given), min_cases=min_cases), decodings * len(given)


def _decode(planted: Planted, step: Step, rng: np.random.Generator) -> list[StepAnswer]:
    n_fixed = N_CASES - planted.n_chance
    fixed = StepAnswer.CANDIDATE if planted.cause in step else StepAnswer.BASELINE
    drawn = rng.random(planted.n_chance) < 0.5
    return [fixed] * n_fixed + [StepAnswer.CANDIDATE if each else StepAnswer.BASELINE for each in drawn.tolist()]


def measure(planted: Planted, *, n: int = TRIALS, is_once: bool = False) -> tuple[float, float, float]:
    """Return the share of trials that blame an innocent field, the share that names the cause, and the mean decodings.

    is_once: each step is decoded once, and one case convicts.
    """
    rng = np.random.default_rng(SEED)
    how = (
        {"decodings": 1, "min_cases": 1} if is_once else {"decodings": UNSTEADY_DECODINGS, "min_cases": UNSTEADY_CASES}
    )
    trials = [bisect(planted, rng, **how) for _ in range(n)]
    blamed = [{name for each in bisected.blamed for name in each.fields} for bisected, _ in trials]
    alone = [{each.fields for each in bisected.blamed} for bisected, _ in trials]
    is_wrong = [bool(names - {planted.cause}) for names in blamed]
    is_right = [frozenset({planted.cause}) in each for each in alone]
    return float(np.mean(is_wrong)), float(np.mean(is_right)), float(np.mean([cost for _, cost in trials]))


def table(n: int = TRIALS) -> list[str]:
    """Return the lines of the table of docs/lab.md."""
    lines = [
        f"| planted in {n:,} bisects of three fields, 12 chosen cases | steps decoded | blamed wrongly | cause named "
        "| decodings |",
        "| --- | --- | --- | --- | --- |",
    ]
    for planted in SITUATIONS:
        for is_once in (True, False):
            wrong, right, cost = measure(planted, n=n, is_once=is_once)
            named = f"{100 * right:.1f} %" if planted.cause else "–"
            how = "once" if is_once else f"{UNSTEADY_DECODINGS} times"
            lines.append(f"| {planted.situation} | {how} | {100 * wrong:.1f} % | {named} | {cost:.0f} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table(int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS)))
