"""Every part of `make bench` can be read: nothing else runs them before somebody wants a figure."""

from importlib import import_module

import pytest

from bench.__main__ import PARTS


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_read_and_can_be_measured(part: str) -> None:
    assert callable(import_module(f"bench.bench_{part}").measure)
