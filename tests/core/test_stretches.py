"""Positions that stand for all of a long trace: each stretch's lowest, by the plain definition."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.trace import lowest_of_stretches

VALUES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, math.nan, math.inf, -math.inf]), max_size=60)


@given(VALUES, st.integers(1, 80))
def test_each_stretch_is_stood_for_by_its_first_lowest_number(values: list[float], n_stretches: int) -> None:
    places = lowest_of_stretches(np.array(values), n_stretches).tolist()
    assert places == sorted(set(places))
    assert len(places) <= n_stretches
    assert all(math.isfinite(values[place]) for place in places)
    known = [place for place, value in enumerate(values) if math.isfinite(value)]
    if known:
        assert min(known, key=lambda place: (values[place], place)) in places
    if len(values) <= n_stretches:
        assert places == known


def test_stretches_are_of_equal_length() -> None:
    assert lowest_of_stretches(np.arange(32_000.0), 4).tolist() == [0, 8_000, 16_000, 24_000]
    assert lowest_of_stretches(np.full(10, np.nan), 4).tolist() == []
