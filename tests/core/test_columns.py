"""Packed columns come back as they were, missing ones as missing, and a wrong size is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.trace import case_columns
from evalboard.core.trace.case_columns import ColumnsDamaged

digests = st.lists(st.none() | st.binary(min_size=16, max_size=16).filter(any))
buckets = st.lists(st.none() | st.integers(0, case_columns.NO_BUCKET - 1))


@given(st.lists(st.floats(0, 1) | st.just(math.nan)))
def test_scores_come_back(scores: list[float]) -> None:
    packed = case_columns.pack_scores(np.array(scores, dtype=np.float64))
    np.testing.assert_array_equal(case_columns.unpack_scores(packed, len(scores)), scores)


@given(digests)
def test_digests_come_back(found: list[bytes | None]) -> None:
    unpacked = case_columns.unpack_digests(case_columns.pack_digests(found), len(found))
    assert [row.tobytes() if row.any() else None for row in unpacked] == found


@given(buckets)
def test_buckets_come_back(found: list[int | None]) -> None:
    unpacked = case_columns.unpack_buckets(case_columns.pack_buckets(found), len(found))
    assert [None if index == case_columns.NO_BUCKET else index for index in unpacked.tolist()] == found


def test_the_bytes_are_little_endian_and_missing_is_a_value_of_its_own() -> None:
    assert case_columns.pack_scores(np.array([1.0, 0.0])) == bytes.fromhex("000000000000f03f 0000000000000000")
    assert math.isnan(case_columns.unpack_scores(case_columns.pack_scores(np.array([math.nan])))[0])
    assert case_columns.pack_digests([None, b"\x01" * 16]) == bytes(16) + b"\x01" * 16
    assert case_columns.pack_buckets([1, None, 256]) == bytes.fromhex("0100 ffff 0001")


def test_unpacked_columns_cannot_be_written_to() -> None:
    scores = case_columns.unpack_scores(case_columns.pack_scores(np.array([1.0])))
    with pytest.raises(ValueError, match="read-only"):
        scores[0] = 0.0


@pytest.mark.parametrize("score", [-0.1, 1.5, math.inf, -math.inf])
def test_what_is_no_score_is_not_packed(score: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        case_columns.pack_scores(np.array([0.5, score]))


def test_what_is_no_digest_or_bucket_is_not_packed() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        case_columns.pack_digests([b"short"])
    for index in (-1, case_columns.NO_BUCKET):
        with pytest.raises(ValueError, match="at most 65535"):
            case_columns.pack_buckets([index])


@pytest.mark.parametrize(
    "unpack", [case_columns.unpack_scores, case_columns.unpack_digests, case_columns.unpack_buckets]
)
@pytest.mark.parametrize(("packed", "n_cases"), [(bytes(33), None), (bytes(32), 1), (b"", 1), (bytes(15), 1)])
def test_a_wrong_size_is_refused(unpack, packed: bytes, n_cases: int | None) -> None:
    with pytest.raises(ColumnsDamaged, match=r"are damaged: \d+ bytes are not .* Score the run again\.$"):
        unpack(packed, n_cases)
