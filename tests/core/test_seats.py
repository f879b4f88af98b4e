"""What a manifest says of seats."""

from typing import Any

import pytest

from evalboard.contract.manifest import EngineSeats
from evalboard.core.profile import read_seats


def manifest(**changes: Any) -> dict[str, Any]:
    return {"engine": {"max_num_seqs": 64, "seats": 9, "max_model_len": 8192, **changes}}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, EngineSeats(64, 9, 8192)),
        ({"max_num_seqs": 8, "seats": 8}, EngineSeats(8, 8, 8192)),
        ({"seats": None}, None),
    ],
    ids=["fewer", "all", "unbounded"],
)
def test_seats_are_read_from_the_manifest(changes: dict[str, Any], found: EngineSeats | None) -> None:
    assert read_seats(manifest(**changes)) == found


@pytest.mark.parametrize("known", [{}, {"source": {"backend": "vLLM"}}, {"engine": {"max_num_seqs": 64}}])
def test_who_says_nothing_of_seats_has_none(known: dict[str, Any]) -> None:
    assert read_seats(known) is None
