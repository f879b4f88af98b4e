"""How much of a difference is noise."""

from dataclasses import asdict

import numpy as np

from bench.simulated import BATCHED, PINNED, pairs
from evalboard.core.stats import NOISE_LEVEL, DifferenceNoise, difference_points, measure_noise_share
from evalboard.wording.noise_share import write_noise_share
from tests.core.golden.readers import Sentence, Situations


def read_share(share: DifferenceNoise, difference: float, near_ties: float | None = None) -> list[Sentence]:
    facts = {**asdict(share), "level": NOISE_LEVEL, "difference": difference, "near_ties": near_ties}
    return [Sentence("noise share", share.reason or "", write_noise_share(facts))]


def batched(difference: float, *, repeats: int = 5, n_cases: int = 800) -> list[Sentence]:
    """Read what is said of two batched runs with this true difference in points."""
    [pair] = pairs(1, BATCHED, difference=difference, k=repeats, n_cases=n_cases)
    share = measure_noise_share(pair.baseline, pair.candidate, is_one_draw=(False, False))
    return read_share(share, difference_points(pair.baseline, pair.candidate))


def against_steady(difference: float) -> list[Sentence]:
    [pair] = pairs(1, BATCHED, difference=difference)
    steady = np.repeat(pair.baseline[:, :1], 5, axis=1)
    share = measure_noise_share(steady, pair.candidate, is_one_draw=(True, False))
    return read_share(share, difference_points(steady, pair.candidate))


def pinned(near_ties: float | None) -> list[Sentence]:
    [pair] = pairs(1, PINNED, difference=-1.0)
    share = measure_noise_share(pair.baseline, pair.candidate, is_one_draw=(True, True))
    return read_share(share, -1.0, near_ties)


SITUATIONS: Situations = {
    "Batched runs, two points lost": lambda: batched(-2.0),
    "Batched runs, two points won": lambda: batched(2.0),
    "Batched runs, nothing changed": lambda: batched(0.0),
    "Batched runs of twenty cases": lambda: batched(0.0, n_cases=20, repeats=2),
    "A batched run against a pinned one": lambda: against_steady(-2.0),
    "Little noise and a small loss in a large suite": lambda: read_share(DifferenceNoise(0.012), -0.052),
    "A difference of nothing": lambda: read_share(DifferenceNoise(0.37), 0.0),
    "Pinned runs that near ties moved": lambda: pinned(-0.4),
    "Pinned runs without near ties": lambda: pinned(None),
    "One repeat a side": lambda: read_share(DifferenceNoise(None, "one_repeat"), -1.2),
    "Repeats that are copies": lambda: read_share(DifferenceNoise(None, "copies"), -1.0),
    "Answers out of a cache": lambda: read_share(DifferenceNoise(None, "left_out"), 0.0),
}
