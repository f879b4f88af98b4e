"""Repeats of two sides, simulated as logit differences, and whether they are called one computation or two.

A case is an answer of some positions; each position has two leading tokens with logits of bfloat16, or float32. Every
repeat adds noise of its own to both logits before they are rounded. A side that is steady adds the same draw to all its
repeats.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.compare import OneComputation
from evalboard.core.stats import (
    LogitNoise,
    average_distances,
    choose_larger_noise,
    judge_distances,
    measure_unevenness,
    median_sd,
)

SEED = 20261122
FLOOR = 0.09  # nats, bfloat16
POSITIONS = (5, 10, 20, 40, 80)

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stack:
    """How the noise of a side's logits comes about, in nats.

    share: of the repeats that have any, as where few batches differ. is_steady: all repeats have the same draw.
    memory: how much of a position's noise stays at the next one, as what a cache holds does. spread: standard deviation
    of the logarithm by which a case's noise is larger or smaller; unevenness: that of a position's. alike: share of the
    cases whose repeats all have one draw. copies: so many of the repeats are the one before them, given again in every
    case. dtype: the logits', by the name of their floor.
    """

    noise: float
    share: float = 1.0
    is_steady: bool = False
    memory: float = 0.0
    spread: float = 0.0
    unevenness: float = 0.0
    alike: float = 0.0
    copies: int = 0
    dtype: str = "bfloat16"


@dataclass(frozen=True, slots=True)
class Situation:
    """Two stacks that answer, and by how much the candidate's logits are off, as a share of the baseline's noise.

    positions: how many of an answer can be held against each other; all of it where both stacks have scored it.
    """

    name: str
    baseline: Stack
    candidate: Stack
    shift: float = 0.0
    n_cases: int = 100
    repeats: int = 3
    positions: tuple[int, ...] = POSITIONS

    def judge(self, rng: np.random.Generator) -> OneComputation:
        across, within, within_too = np.concatenate([self._cases(n, rng) for n in self.positions]).T
        return judge_distances(across, (within, within_too), floor=FLOOR)

    def _cases(self, n: int, rng: np.random.Generator) -> Numbers:
        """Return the mean distances of the cases whose answers have n positions, as `average_distances` does."""
        k = self.repeats
        logits = rng.uniform(8, 31, (self.n_cases // len(self.positions), 1, 2, n))
        moved = logits + rng.normal(0, self.shift * self.baseline.noise, logits.shape)
        margins = [_margins(logits, self.baseline, k, rng), _margins(moved, self.candidate, k, rng)]
        together = np.concatenate(margins, axis=1)
        gaps = together[:, :, None] - together[:, None]
        return average_distances((gaps**2).mean(axis=3), (gaps == 0).all(axis=3), k)


def share_called_two(situation: Situation, n: int) -> float:
    """Return the share of n comparisons that are called two computations."""
    rng = np.random.default_rng(SEED)
    return float(np.mean([situation.judge(rng).answer == "two" for _ in range(n)]))


def tables(
    stack: Stack, k: int, rng: np.random.Generator, *, n_cases: int = 100, routed: float = 0.0, shift: float = 0.33
) -> Numbers:
    """float64[n, k, k] of the cases in which anything differs: the distances of k repeats of one stack.

    routed: share of the answers that another build gave, whose logits are off so that D is `shift` nats.
    """
    return routed_tables(stack, k, rng, n_cases=n_cases, routed=routed, shift=shift)[0]


def routed_tables(
    stack: Stack, k: int, rng: np.random.Generator, *, n_cases: int, routed: float, shift: float
) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return what `tables` does, and bool[n, k]: which of the answers another build gave."""
    distances, routes = [], []
    for margins, is_routed in _answers(stack, k, rng, n_cases, routed=routed, shift=shift):
        apart = ((margins[:, :, None] - margins[:, None]) ** 2).mean(axis=3)
        differs = apart.any(axis=(1, 2))
        distances.append(apart[differs])
        routes.append(is_routed[differs])
    return np.concatenate(distances), np.concatenate(routes)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Pairs of neighbouring repeats that differ: D over their positions. lengths, rms, largest: float64[pairs]."""

    lengths: Numbers
    rms: Numbers
    largest: Numbers

    def measure_noise(self, dtype: str) -> LogitNoise:
        sd = median_sd(self.rms.tolist())
        unevenness = measure_unevenness(zip(self.rms.tolist(), map(int, self.lengths.tolist()), strict=True), sd)
        return choose_larger_noise((sd, dtype), (sd, dtype), unevenness=unevenness)

    def share_beyond(self, noise: LogitNoise) -> float:
        """Return the share of the pairs that moved further than this noise explains."""
        pairs = zip(self.rms.tolist(), self.lengths.tolist(), strict=True)
        return float(np.mean([noise.is_larger(rms, int(n)) for rms, n in pairs]))


def neighbours(
    stack: Stack,
    k: int,
    rng: np.random.Generator,
    *,
    n_cases: int,
    routed: float = 0.0,
    spike: float = 0.0,
    positions: Sequence[int] = POSITIONS,
) -> Neighbours:
    """Simulate neighbouring repeats. routed: as in `tables`; spike: nats by which D is off at one position of each."""
    pairs = []
    for margins, _ in _answers(stack, k, rng, n_cases, positions, routed=routed):
        shifts = np.diff(margins, axis=1).reshape(-1, margins.shape[2])
        shifts[np.arange(len(shifts)), rng.integers(0, shifts.shape[1], len(shifts))] += spike
        shifts = shifts[shifts.any(axis=1)]
        lengths = np.full(len(shifts), float(shifts.shape[1]))
        pairs.append([lengths, np.sqrt((shifts**2).mean(axis=1)), np.abs(shifts).max(axis=1)])
    return Neighbours(*np.concatenate(pairs, axis=1))


def _answers(
    stack: Stack,
    k: int,
    rng: np.random.Generator,
    n_cases: int,
    positions: Sequence[int] = POSITIONS,
    *,
    routed: float,
    shift: float = 0.33,
) -> Iterator[tuple[Numbers, NDArray[np.bool_]]]:
    """The margins of k repeats, float64[cases, k, n], for each length n, and bool[cases, k]: which are routed."""
    for n in positions:
        logits = rng.uniform(8, 31, (n_cases // len(positions), 1, 2, n))
        is_routed = rng.random((len(logits), k, 1, 1)) < routed
        off = rng.normal(0, shift / np.sqrt(2), logits.shape) * is_routed
        yield _margins(logits + off, stack, k, rng), is_routed[:, :, 0, 0]


def _margins(logits: Numbers, stack: Stack, k: int, rng: np.random.Generator) -> Numbers:
    """float64[cases, k, n]: the gap of the two logits, by repeat; logits of one repeat are those of all."""
    n_cases, _, _, n = logits.shape
    noise = rng.normal(0, stack.noise, (n_cases, 1 if stack.is_steady else k, 2, n))
    if stack.alike:
        noise = np.where(rng.random((n_cases, 1, 1, 1)) < stack.alike, noise[:, :1], noise)
    for at in range(1, n if stack.memory else 0):
        noise[..., at] = stack.memory * noise[..., at - 1] + np.sqrt(1 - stack.memory**2) * noise[..., at]
    noise *= rng.random((*noise.shape[:2], 1, 1)) < stack.share
    noise *= np.exp(rng.normal(0, stack.spread, (n_cases, 1, 1, 1)))
    if stack.copies:
        noise[:, k - stack.copies :] = noise[:, k - stack.copies - 1, None]
    if stack.unevenness:
        noise *= np.exp(rng.normal(0, stack.unevenness, (n_cases, 1, 1, n)))
    rounded = _bfloat16(logits + noise) if stack.dtype == "bfloat16" else np.float64(np.float32(logits + noise))
    return np.broadcast_to(rounded[:, :, 0] - rounded[:, :, 1], (n_cases, k, n))


def _bfloat16(values: Numbers) -> Numbers:
    step = 2.0 ** (np.floor(np.log2(np.abs(values))) - 7)
    rounded: Numbers = np.rint(values / step) * step
    return rounded
