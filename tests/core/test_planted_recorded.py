"""A cause that is planted on recorded answers of a real model is named: three pairs of each answer, 25 at full size."""

from functools import cache

import pytest

from bench.planted_causes import PAIRS
from bench.planted_recorded import list_recorded, measure_recorded_noise
from evalboard.core.stats import LogitNoise

PLANTED = [planted.name for planted in list_recorded(LogitNoise(0.1))]


@cache
def measure_noise(n_pairs: int) -> LogitNoise:
    return measure_recorded_noise(n_pairs)


@pytest.mark.parametrize("n_pairs", [120, pytest.param(PAIRS, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_cause_is_named(name: str, n_pairs: int) -> None:
    noise = measure_noise(n_pairs)
    [planted] = [each for each in list_recorded(noise) if each.name == name]
    codes = planted.named(noise, n_pairs)
    assert sum(codes[code] for code in planted.codes.split(", ")) >= 0.98 * codes.total() > 0
