"""Packed columns come back as they were, missing ones as missing, and a wrong size is refused."""

import json
import math

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core import columns
from evalboard.core.columns import ColumnsDamaged

digests = st.lists(st.none() | st.binary(min_size=16, max_size=16).filter(any))
buckets = st.lists(st.none() | st.integers(0, columns.NO_BUCKET - 1))
reasons = st.lists(st.none() | st.text(st.characters()))  # lone surrogates too: a model can say anything


@given(st.lists(st.floats(0, 1) | st.just(math.nan)))
def test_scores_come_back(scores: list[float]) -> None:
    packed = columns.pack_scores(np.array(scores, dtype=np.float64))
    np.testing.assert_array_equal(columns.unpack_scores(packed, len(scores)), scores)


@given(digests)
def test_digests_come_back(found: list[bytes | None]) -> None:
    assert columns.unpack_digests(columns.pack_digests(found), len(found)) == found


@given(buckets)
def test_buckets_come_back(found: list[int | None]) -> None:
    unpacked = columns.unpack_buckets(columns.pack_buckets(found), len(found))
    assert [None if index == columns.NO_BUCKET else index for index in unpacked.tolist()] == found


@given(reasons)
def test_reasons_come_back(found: list[str | None]) -> None:
    assert columns.unpack_reasons(columns.pack_reasons(found), len(found)) == found


def test_the_bytes_are_little_endian_and_missing_is_a_value_of_its_own() -> None:
    assert columns.pack_scores(np.array([1.0, 0.0])) == bytes.fromhex("000000000000f03f 0000000000000000")
    assert math.isnan(columns.unpack_scores(columns.pack_scores(np.array([math.nan])))[0])
    assert columns.pack_digests([None, b"\x01" * 16]) == bytes(16) + b"\x01" * 16
    assert columns.pack_buckets([1, None, 256]) == bytes.fromhex("0100 ffff 0001")


def test_unpacked_columns_cannot_be_written_to() -> None:
    scores = columns.unpack_scores(columns.pack_scores(np.array([1.0])))
    with pytest.raises(ValueError, match="read-only"):
        scores[0] = 0.0


@pytest.mark.parametrize("score", [-0.1, 1.5, math.inf, -math.inf])
def test_what_is_no_score_is_not_packed(score: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        columns.pack_scores(np.array([0.5, score]))


def test_what_is_no_digest_or_bucket_is_not_packed() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        columns.pack_digests([b"short"])
    for index in (-1, columns.NO_BUCKET):
        with pytest.raises(ValueError, match="at most 65535"):
            columns.pack_buckets([index])


@pytest.mark.parametrize("unpack", [columns.unpack_scores, columns.unpack_digests, columns.unpack_buckets])
@pytest.mark.parametrize(("packed", "n_cases"), [(bytes(33), None), (bytes(32), 1), (b"", 1), (bytes(15), 1)])
def test_a_wrong_size_is_refused(unpack, packed: bytes, n_cases: int | None) -> None:
    with pytest.raises(ColumnsDamaged, match=r"are damaged: \d+ bytes are not .* Score the run again\.$"):
        unpack(packed, n_cases)


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        pytest.param(b"", "damaged", id="nothing"),
        pytest.param(b"not zstd", "damaged", id="not-zstd"),
        pytest.param(columns.pack_reasons(["yes"])[:-1], "damaged", id="cut-off"),
        pytest.param(columns.pack_reasons(["yes"]) + b"\x00", "damaged", id="something-behind"),
        pytest.param(zstandard.compress(b"[1]"), "not a list of sentences", id="a-number"),
        pytest.param(zstandard.compress(b'{"a": "b"}'), "not a list of sentences", id="an-object"),
        pytest.param(zstandard.compress(b"["), "damaged", id="half-json"),
        pytest.param(zstandard.compress(b'["\xff"]'), "damaged", id="not-utf-8"),
        pytest.param(columns.pack_reasons(["a", "b"]), "there are 2 for 1 cases", id="one-too-many"),
        pytest.param(zstandard.compress(bytes(columns.MAX_REASONS_BYTES + 1)), "ask for", id="bomb"),
        pytest.param(
            zstandard.ZstdCompressor(write_content_size=False).compress(json.dumps(["a"]).encode()),
            "ask for -1 bytes",
            id="size-not-told",
        ),
    ],
)
def test_damaged_reasons_are_refused(packed: bytes, words: str) -> None:
    with pytest.raises(ColumnsDamaged, match=words):
        columns.unpack_reasons(packed, 1)
