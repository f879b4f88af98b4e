"""Blocks of traces: exact to the bit, and nothing damaged, unknown or impossible is read."""

import zlib
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalboard.core import codec
from evalboard.core.cursor import varint
from evalboard.core.errors import TraceDamaged
from evalboard.core.trace import Trace, make_trace
from tests import make

DATA = Path(__file__).parent / "data"
ZERO, MINUS_ZERO, INF, MINUS_INF = 0x0000_0000, 0x8000_0000, 0x7F80_0000, 0xFF80_0000
QUIET_NAN, SIGNALLING_NAN, TINY, MINUS_HALF = 0x7FC0_0123, 0xFFA0_0001, 0x8000_0001, 0xBF00_0000

special_bits = st.sampled_from(
    [ZERO, MINUS_ZERO, INF, MINUS_INF, QUIET_NAN, SIGNALLING_NAN, TINY, MINUS_HALF, 0xBF80_0000, 0xBF80_0001]
)
float_bits = special_bits | st.integers(0, 2**32 - 1)
token_ids = st.integers(-1, 50) | st.sampled_from([255, 65534, 65535, 2**24, 2**31 - 1, -(2**31)])


@st.composite
def any_traces(draw: st.DrawFn) -> Trace:
    """Any ids beside any float bits; chosen tokens often, but not always, among the alternatives."""
    n, k = draw(st.integers(0, 12)), draw(st.integers(0, 4))
    ids = [[draw(token_ids) for _ in range(k)] for _ in range(n)]
    bits = [[draw(float_bits) for _ in range(k)] for _ in range(n)]
    chosen = []
    for position in range(n):
        rank = draw(st.integers(0, k))
        listed = rank < k
        chosen.append((ids[position][rank], bits[position][rank]) if listed else (draw(token_ids), draw(float_bits)))
    trace = make.trace_of_bits([token for token, _ in chosen], [value for _, value in chosen], ids, bits)
    prompt = draw(st.none() | st.lists(token_ids, max_size=5))
    if n == 0:
        trace = empty(k)
    return with_prompt(trace, prompt)


def empty(k: int) -> Trace:
    none = np.zeros((0, k))
    return Trace(np.zeros(0, np.int32), np.zeros(0, np.float32), none.astype(np.int32), none.astype(np.float32))


def with_prompt(trace: Trace, prompt: list[int] | None) -> Trace:
    kept = None if prompt is None else np.array(prompt, dtype=np.int32)
    return Trace(
        trace.token_ids, trace.logprobs, trace.alternative_ids, trace.alternative_logprobs, prompt_token_ids=kept
    )


def bits(trace: Trace) -> list[object]:
    """Everything that a trace holds, floats as their bits."""
    prompt = trace.prompt_token_ids
    columns = (trace.token_ids, trace.logprobs, trace.alternative_ids, trace.alternative_logprobs)
    held: list[object] = [(column.dtype.str, column.shape, column.tobytes()) for column in columns]
    return [*held, None if prompt is None else prompt.tolist()]


def seal(body: bytes) -> bytes:
    """A block with these bytes and the checksum that goes with them."""
    return body + zlib.crc32(body).to_bytes(4, "little")


@given(st.lists(any_traces(), max_size=5))
@example([])
@example([empty(0), empty(7), make.trace("a", k=1), empty(3)])
def test_reading_gives_back_every_bit(traces: list[Trace]) -> None:
    block = codec.encode_block(traces)
    assert [bits(trace) for trace in codec.read_block(block)] == [bits(trace) for trace in traces]
    for slot, trace in enumerate(traces):
        assert bits(codec.read_trace(block, slot)) == bits(trace)


@given(st.lists(any_traces(), min_size=1, max_size=5), st.data())
def test_some_slots_are_read_like_all_of_them(traces: list[Trace], data: st.DataObject) -> None:
    """In any order and more than once: strays, misfits and ranks of the neighbours do not shift a trace's own."""
    slots = data.draw(st.lists(st.integers(0, len(traces) - 1), max_size=6))
    found = codec.read_traces(codec.encode_block(traces), slots)
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


@given(any_traces(), any_traces())
def test_digests_are_equal_exactly_when_the_bits_are(one: Trace, other: Trace) -> None:
    assert (one.digest == other.digest) == (bits(one)[:4] == bits(other)[:4])
    assert codec.read_trace(codec.encode_block([one]), 0).digest == one.digest


@pytest.mark.parametrize("grid", [2, 4, 7, 10, 19, 24])
@pytest.mark.parametrize("k", [0, 1, 2, 5, 20, 255])
def test_traces_of_an_engine_come_back(grid: int, k: int) -> None:
    traces = [make.trace("token by token", k=k, grid=grid, seed=seed) for seed in range(3)]
    assert [bits(trace) for trace in codec.read_block(codec.encode_block(traces))] == [bits(trace) for trace in traces]


@pytest.mark.parametrize("odd", [ZERO, MINUS_ZERO, INF, MINUS_INF, QUIET_NAN, SIGNALLING_NAN, TINY])
@pytest.mark.parametrize("column", ["logprobs", "alternative_logprobs"])
@pytest.mark.parametrize("place", [0, 1, 40])
def test_one_odd_value_among_ordinary_ones_comes_back(odd: int, column: str, place: int) -> None:
    trace = make.trace("an ordinary answer of some forty-six characters")
    getattr(trace, column).view(np.uint32).flat[place] = odd
    assert bits(codec.read_trace(codec.encode_block([trace]), 0)) == bits(trace)


def test_the_engines_order_of_equal_logprobs_is_kept() -> None:
    trace = make_trace([7], [-0.75], [[(9, -0.75), (7, -0.75), (8, -0.75)]])
    again = codec.read_trace(codec.encode_block([trace]), 0)
    assert again.alternative_ids.tolist() == [[9, 7, 8]]


def test_a_chosen_token_may_be_no_alternative() -> None:
    trace = make_trace([70_000, 2], [-4.5, -1.0], [[(1, -0.5), (2, -1.0)], [(3, -0.5), (2, -1.25)]])
    assert bits(codec.read_trace(codec.encode_block([trace]), 0)) == bits(trace)


def test_a_memoryview_is_read_like_bytes() -> None:
    block = codec.encode_block([make.trace()])
    assert bits(codec.read_trace(memoryview(block), 0)) == bits(make.trace())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def block() -> bytes:
    odd = make_trace([9, 1], [-3.5, -0.5], [[(1, -0.5), (2, float("-inf"))], [(1, -0.5), (4, -1.5)]], [5, 6])
    return codec.encode_block(
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
    body = codec.encode_block(stored)[:-4]
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
        codec.read_block(seal(codec.MAGIC + bytes([codec.VERSION, 1]) + noise) if has_head else noise)


@pytest.mark.parametrize("version", [0, 2, 255])
def test_an_unknown_version_says_to_update(block: bytes, version: int) -> None:
    body = codec.MAGIC + bytes([version]) + block[4:-4]
    with pytest.raises(TraceDamaged, match=f"version {version}, and this program reads version 1: update Evalboard"):
        codec.read_block(seal(body))


@pytest.mark.parametrize("slot", [-1, 2, 1000])
def test_a_slot_that_is_not_there_is_refused(block: bytes, slot: int) -> None:
    with pytest.raises(TraceDamaged, match=f"has no slot {slot}"):
        codec.read_trace(block, slot)


def lying(*, n: int = 1, k: int = 1, prompt: int = 0, flags: int = 31, size: int, columns: bytes) -> bytes:
    """A block of one trace whose directory and sizes say what they are told to."""
    entry = varint(1) + varint(n) + varint(k) + varint(prompt) + bytes(16)
    frame = zstandard.ZstdCompressor(level=19, write_content_size=False).compress(columns)
    return seal(codec.MAGIC + bytes([codec.VERSION]) + entry + bytes([flags]) + varint(size) + frame)


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
        pytest.param(seal(codec.MAGIC + b"\x01\x01" + b"\x80" * 9), "impossible number", id="endless-number"),
        pytest.param(b"", "not a trace block", id="nothing"),
    ],
)
def test_lies_are_refused(damaged: bytes, words: str) -> None:
    for read in (codec.read_block, lambda block: codec.read_traces(block, [0])):
        with pytest.raises(TraceDamaged, match=words):
            read(damaged)


def test_every_refusal_says_what_to_do(block: bytes) -> None:
    with pytest.raises(TraceDamaged, match=r"Run the case again, or restore the database from a backup\.$"):
        codec.read_block(block[:-1])


def test_a_trace_beyond_the_formats_limits_is_not_encoded() -> None:
    with pytest.raises(ValueError, match="more than 255 alternatives"):
        codec.encode_block([make.trace("a", k=256)])


@pytest.mark.parametrize(("dtype", "most"), [("float32", 9.1), ("bfloat16", 7.1)])
def test_real_traces_recorded_earlier_are_still_read_and_still_take_as_little(dtype: str, most: float) -> None:
    """docs/trace-format.md says how they were recorded; each one's digest is checked on reading."""
    traces = codec.read_block((DATA / f"smollm2-{dtype}.evt").read_bytes())
    assert len(traces) == 40
    bare = [with_prompt(trace, None) for trace in traces[:32]]
    assert len(codec.encode_block(bare)) / sum(map(len, bare)) <= most


def test_every_real_trace_comes_back_when_stored_alone() -> None:
    for trace in codec.read_block((DATA / "smollm2-float32.evt").read_bytes()):
        assert bits(codec.read_trace(codec.encode_block([trace]), 0)) == bits(trace)
