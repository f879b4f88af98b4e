"""What is planted on recorded answers of a real model is named by its cause."""

import pytest

from bench.planted_recorded import Planted, list_recorded, measure_recorded_noise

NOISE = measure_recorded_noise()


@pytest.mark.parametrize("planted", list_recorded(NOISE), ids=lambda planted: planted.name)
def test_a_planted_cause_is_named(planted: Planted) -> None:
    codes = planted.named(NOISE)
    assert sum(codes[code] for code in planted.codes.split(", ")) >= 0.98 * codes.total() > 0
