"""Blocks of version 1 stay readable: exact to the bit, and nothing damaged, unknown or impossible is read."""

from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalboard.core.errors import TraceDamaged
from evalboard.core.trace import codec
from evalboard.core.trace.trace import Trace, make_trace
from tests import make
from tests.core import version1_blocks
from tests.core.test_codec import (
    INF,
    MINUS_INF,
    MINUS_ZERO,
    QUIET_NAN,
    SIGNALLING_NAN,
    TINY,
    ZERO,
    any_traces,
    bits,
    empty,
)
from tests.core.version1_blocks import seal, varint

DATA = Path(__file__).parent / "data"


@given(st.lists(any_traces(), max_size=5))
@example([])
@example([empty(0), empty(7), make.trace("a", k=1), empty(3)])
def test_reading_gives_back_every_bit(traces: list[Trace]) -> None:
    block = version1_blocks.encode(traces)
    assert [bits(trace) for trace in codec.read_block(block)] == [bits(trace) for trace in traces]
    for slot, trace in enumerate(traces):
        assert bits(codec.read_trace(block, slot)) == bits(trace)


@given(st.lists(any_traces(), min_size=1, max_size=5), st.data())
def test_some_slots_are_read_like_all_of_them(traces: list[Trace], data: st.DataObject) -> None:
    """In any order and more than once: strays, misfits and ranks of the neighbours do not shift a trace's own."""
    slots = data.draw(st.lists(st.integers(0, len(traces) - 1), max_size=6))
    found = codec.read_traces(version1_blocks.encode(traces), slots)
    assert [bits(trace) for trace in found] == [bits(traces[slot]) for slot in slots]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_slot_of_a_real_block_is_read_alone_like_together(dtype: str) -> None:
    block = (DATA / f"smollm2-{dtype}.evt").read_bytes()
    whole = [bits(trace) for trace in codec.read_block(block)]
    assert [bits(trace) for trace in codec.read_traces(block, range(40))] == whole
    assert [bits(codec.read_traces(block, [slot])[0]) for slot in range(40)] == whole


def test_reading_no_slot_still_refuses_what_is_damaged(block: bytes) -> None:
    assert codec.read_traces(block, []) == []
    with pytest.raises(TraceDamaged):
        codec.read_traces(block[:-1], [])


@pytest.mark.parametrize("grid", [2, 4, 7, 10, 19, 24])
@pytest.mark.parametrize("k", [0, 1, 2, 5, 20, 255])
def test_traces_of_an_engine_come_back(grid: int, k: int) -> None:
    traces = [make.trace("token by token", k=k, grid=grid, seed=seed) for seed in range(3)]
    assert [bits(trace) for trace in codec.read_block(version1_blocks.encode(traces))] == [
        bits(trace) for trace in traces
    ]


@pytest.mark.parametrize("odd", [ZERO, MINUS_ZERO, INF, MINUS_INF, QUIET_NAN, SIGNALLING_NAN, TINY])
@pytest.mark.parametrize("column", ["logprobs", "alternative_logprobs"])
@pytest.mark.parametrize("place", [0, 1, 40])
def test_one_odd_value_among_ordinary_ones_comes_back(odd: int, column: str, place: int) -> None:
    trace = make.trace("an ordinary answer of some forty-six characters")
    getattr(trace, column).view(np.uint32).flat[place] = odd
    assert bits(codec.read_trace(version1_blocks.encode([trace]), 0)) == bits(trace)


def test_a_memoryview_is_read_like_bytes() -> None:
    block = version1_blocks.encode([make.trace()])
    assert bits(codec.read_trace(memoryview(block), 0)) == bits(make.trace())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def block() -> bytes:
    odd = make_trace([9, 1], [-3.5, -0.5], [[(1, -0.5), (2, float("-inf"))], [(1, -0.5), (4, -1.5)]], [5, 6])
    return version1_blocks.encode(
        [make.trace("a longer answer, so that columns are compressed" * 2, prompt=[1, 2, 3]), odd]
    )


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_a_changed_byte_anywhere_is_refused(block: bytes, flip: int) -> None:
    for place in range(len(block)):
        damaged = bytearray(block)
        damaged[place] ^= flip
        with pytest.raises(TraceDamaged):
            codec.read_block(bytes(damaged))


def test_a_changed_byte_under_a_right_checksum_is_refused_or_changes_nothing() -> None:
    """Prompt ids aside, which only the checksum guards: a trace that is read is the one that was stored."""
    stored = [make.trace("short"), make.trace("and a second one", seed=1, grid=4)]
    body = version1_blocks.encode(stored)[:-4]
    digests = [trace.digest for trace in stored]
    for place in range(len(body)):
        for flip in (0x01, 0x10, 0x80, 0xFF):
            damaged = bytearray(body)
            damaged[place] ^= flip
            for slot, stored_digest in enumerate(digests):
                try:
                    found = codec.read_trace(seal(bytes(damaged)), slot)
                except TraceDamaged:
                    continue
                assert found.digest == stored_digest
            try:
                together = [trace.digest for trace in codec.read_block(seal(bytes(damaged)))]
            except TraceDamaged:
                continue
            assert together == digests


def test_every_truncation_is_refused(block: bytes) -> None:
    for size in range(len(block)):
        with pytest.raises(TraceDamaged):
            codec.read_block(block[:size])
    for size in range(len(block) - 4):
        with pytest.raises(TraceDamaged):
            codec.read_block(seal(block[:size]))


@pytest.mark.parametrize("extra", [b"\x00", b"\x00" * 40, b"EvT\x01"])
def test_trailing_bytes_are_refused(block: bytes, extra: bytes) -> None:
    for longer in (block + extra, seal(block[:-4] + extra)):
        with pytest.raises(TraceDamaged):
            codec.read_block(longer)


@given(st.binary(max_size=200), st.booleans())
@settings(max_examples=200)
def test_noise_is_refused(noise: bytes, has_head: bool) -> None:
    with pytest.raises(TraceDamaged):
        codec.read_block(seal(b"EvT\x01\x01" + noise) if has_head else noise)


@pytest.mark.parametrize("slot", [-1, 2, 1000])
def test_a_slot_that_is_not_there_is_refused(block: bytes, slot: int) -> None:
    with pytest.raises(TraceDamaged, match=f"has no slot {slot}"):
        codec.read_trace(block, slot)


def lying(*, n: int = 1, k: int = 1, prompt: int = 0, flags: int = 31, size: int, columns: bytes) -> bytes:
    """A block of one trace whose directory and sizes say what they are told to."""
    entry = varint(1) + varint(n) + varint(k) + varint(prompt) + bytes(16)
    frame = zstandard.ZstdCompressor(level=19, write_content_size=False).compress(columns)
    return seal(b"EvT\x01" + entry + bytes([flags]) + varint(size) + frame)


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        pytest.param(lying(size=2**34, columns=bytes(5)), "most it can need", id="asks-for-16-gigabytes"),
        pytest.param(lying(size=20, columns=bytes(2**26)), "cannot be unpacked", id="bomb-in-a-small-frame"),
        pytest.param(lying(size=20, columns=bytes(5)), "in place of 20", id="frame-too-short"),
        pytest.param(lying(size=6, columns=bytes(6)), "more than its directory", id="columns-too-long"),
        pytest.param(lying(n=3, size=5, columns=bytes(5)), "too early", id="columns-too-short"),
        pytest.param(lying(n=2**33, size=5, columns=bytes(5)), "positions times", id="huge-n"),
        pytest.param(lying(n=2**24, k=20, size=5, columns=bytes(5)), "positions times", id="huge-table"),
        pytest.param(lying(n=0, k=2**30, size=0, columns=b""), "more than 255 alternatives", id="huge-k"),
        pytest.param(lying(prompt=2**30, size=5, columns=bytes(5)), "prompt tokens", id="huge-prompt"),
        pytest.param(lying(flags=25, size=5, columns=bytes(5)), "impossible grid", id="no-such-grid"),
        pytest.param(
            lying(flags=0x80 | 31, size=6, columns=b"\x01" + bytes(5)), "does not hold", id="rank-past-the-last"
        ),
        pytest.param(lying(k=0, size=0, columns=b""), "does not hold", id="rank-where-there-are-none"),
        pytest.param(lying(size=5, columns=bytes(5)), "does not match its digest", id="wrong-digest"),
        pytest.param(seal(b"EvT\x01\x01" + b"\x80" * 9), "impossible number", id="endless-number"),
        pytest.param(b"", "not a trace block", id="nothing"),
    ],
)
def test_lies_are_refused(damaged: bytes, words: str) -> None:
    for read in (codec.read_block, lambda block: codec.read_traces(block, [0])):
        with pytest.raises(TraceDamaged, match=words):
            read(damaged)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_real_traces_that_version_1_recorded_are_still_read(dtype: str) -> None:
    """docs/trace-format.md says how they were recorded; each one's digest is checked on reading."""
    block = (DATA / f"smollm2-{dtype}.evt").read_bytes()
    assert block.startswith(b"EvT\x01")
    traces = codec.read_block(block)
    assert len(traces) == 40
    assert version1_blocks.encode(traces) == block
