"""Watches of prompts whose first word is split, simulated: the error rates of border probes in docs/probes.md.

Each prompt has two words, the first with a share of 0.3 to 0.7. A probe asks each of 20 prompts 10 times, so 100 probes
are 1,000 rounds. After a change every share has moved by as much, up or down.
"""

from dataclasses import dataclass

import numpy as np

from evalboard.core.probes import judge_watch

SEED = 20261129
N_PROMPTS, N_CALLS = 20, 10
PARAMETERS = {"calls": N_CALLS, "random_seed": 0}
N_BEFORE = 40  # probes before a change


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A situation. shift: of each share, after `n_before` probes; within: probes in which a change is to be noticed.

    n: how many series are simulated.
    """

    situation: str
    shift: float
    n_before: int
    within: int
    promised: str
    n: int = 100


CASES = (
    Watched(situation="no change in 1,000 rounds", shift=0.0, n_before=100, within=0, promised="at most 1 %", n=500),
    Watched(situation="shares moved by 0.2", shift=0.2, n_before=N_BEFORE, within=4, promised="at least 95 %"),
    Watched(situation="shares moved by 0.15", shift=0.15, n_before=N_BEFORE, within=8, promised="at least 95 %"),
    Watched(situation="shares moved by 0.1", shift=0.1, n_before=N_BEFORE, within=16, promised=""),
)


def measure(case: Watched, n: int) -> float:
    """Return the share of n series that are called changed: at all, or within the probes after the change."""
    rng = np.random.default_rng(SEED)
    return sum(_is_noticed(case, rng, index) for index in range(n)) / n


def _is_noticed(case: Watched, rng: np.random.Generator, index: int) -> bool:
    shares = rng.uniform(0.3, 0.7, N_PROMPTS)
    moved = shares + case.shift * rng.choice([-1, 1], N_PROMPTS)
    probes: list[dict[int, dict[str, int]]] = []
    for place in range(case.n_before + case.within):
        words = rng.binomial(N_CALLS, shares if place < case.n_before else moved)
        probes.append({prompt: {"a": int(n), "b": N_CALLS - int(n)} for prompt, n in enumerate(words)})
        if judge_watch(probes, parameters={**PARAMETERS, "random_seed": index}).state == "changed":
            return case.within == 0 or place >= case.n_before
    return False
