"""Blocks of traces: exact to the bit, and nothing damaged, unknown or impossible is read."""

import itertools
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalboard.core.errors import TraceDamaged
from evalboard.core.trace import codec, directory, packing
from evalboard.core.trace.form import WHOLE, Form
from evalboard.core.trace.streams import Sizes
from evalboard.core.trace.trace import TokenTrace, make_trace
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
def any_traces(draw: st.DrawFn) -> TokenTrace:
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


def empty(k: int) -> TokenTrace:
    none = np.zeros((0, k))
    return TokenTrace(np.zeros(0, np.int32), np.zeros(0, np.float32), none.astype(np.int32), none.astype(np.float32))


def with_prompt(trace: TokenTrace, prompt: list[int] | None) -> TokenTrace:
    kept = None if prompt is None else np.array(prompt, dtype=np.int32)
    return TokenTrace(
        trace.token_ids, trace.logprobs, trace.alternative_ids, trace.alternative_logprobs, prompt_token_ids=kept
    )


def bits(trace: TokenTrace) -> list[object]:
    """Everything that a trace holds, floats as their bits."""
    prompt = trace.prompt_token_ids
    columns = (trace.token_ids, trace.logprobs, trace.alternative_ids, trace.alternative_logprobs)
    held: list[object] = [(column.dtype.str, column.shape, column.tobytes()) for column in columns]
    return [*held, None if prompt is None else prompt.tolist()]


def sections(block: bytes) -> list[slice]:
    """The directory, the parts and the prompt ids of a block; each ends in a checksum of its own."""
    table = directory.read_directories([block])
    begins = [0, *table.part_offsets.tolist(), int(table.ends[0])]
    spans = [slice(begin, end) for begin, end in itertools.pairwise([*begins, len(block)])]
    return [span for span in spans if span.start < span.stop]


def seal(damaged: bytes, spans: Sequence[slice]) -> bytes:
    """A block with these bytes and the checksums that go with them."""
    return b"".join(signed(damaged[span][:-4]) for span in spans)


def signed(body: bytes) -> bytes:
    return body + zlib.crc32(body).to_bytes(4, "little")


@given(st.lists(any_traces(), max_size=5))
@example([])
@example([empty(0), empty(7), make.trace("a", k=1), empty(3)])
def test_reading_gives_back_every_bit(traces: list[TokenTrace]) -> None:
    block = codec.encode_block(traces)
    assert [bits(trace) for trace in codec.read_block(block)] == [bits(trace) for trace in traces]
    for slot, trace in enumerate(traces):
        assert bits(codec.read_trace(block, slot)) == bits(trace)


@given(st.lists(any_traces(), min_size=1, max_size=5), st.data())
def test_some_slots_are_read_like_all_of_them(traces: list[TokenTrace], data: st.DataObject) -> None:
    """In any order and more than once: strays, misfits and ranks of the neighbours do not shift a trace's own."""
    slots = data.draw(st.lists(st.integers(0, len(traces) - 1), max_size=6))
    found = codec.read_traces(codec.encode_block(traces), slots)
    assert [bits(trace) for trace in found] == [bits(traces[slot]) for slot in slots]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_slot_of_a_real_block_is_read_alone_like_together(dtype: str) -> None:
    block = codec.encode_block(codec.read_block((DATA / f"smollm2-{dtype}.evt").read_bytes()))
    whole = [bits(trace) for trace in codec.read_block(block)]
    assert [bits(trace) for trace in codec.read_traces(block, range(40))] == whole
    assert [bits(codec.read_traces(block, [slot])[0]) for slot in range(40)] == whole


def test_reading_no_slot_still_refuses_what_is_damaged(block: bytes) -> None:
    assert codec.read_traces(block, []) == []
    with pytest.raises(TraceDamaged):
        codec.read_traces(block[:-1], [])


@given(any_traces(), any_traces())
def test_digests_are_equal_exactly_when_the_bits_are(one: TokenTrace, other: TokenTrace) -> None:
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


@pytest.mark.parametrize("flips", [(0x01, 0x80), pytest.param((0x10, 0xFF), marks=pytest.mark.nightly)])
def test_a_changed_byte_under_right_checksums_is_refused_or_changes_nothing(flips: tuple[int, ...]) -> None:
    """Prompt ids aside, which only the checksum guards: a trace that is read is the one that was stored."""
    stored = [make.trace("short"), make.trace("and a second one", seed=1, grid=4)]
    block = codec.encode_block(stored)
    spans, digests = sections(block), [trace.digest for trace in stored]
    for place in range(len(block)):
        for flip in flips:
            damaged = bytearray(block)
            damaged[place] ^= flip
            sealed = seal(bytes(damaged), spans)
            for slot, stored_digest in enumerate(digests):
                try:
                    read = codec.read_trace(sealed, slot)
                except TraceDamaged:
                    continue
                assert read.digest == stored_digest
            try:
                together = [trace.digest for trace in codec.read_block(sealed)]
            except TraceDamaged:
                continue
            assert together == digests


def test_every_truncation_is_refused(block: bytes) -> None:
    for size in range(len(block)):
        with pytest.raises(TraceDamaged):
            codec.read_block(block[:size])
        with pytest.raises(TraceDamaged):
            codec.read_traces(block[:size], [])


@pytest.mark.parametrize("extra", [b"\x00", b"\x00" * 40, b"EvT\x02"])
@pytest.mark.parametrize("prompt", [None, [1, 2]])
def test_trailing_bytes_are_refused(extra: bytes, prompt: list[int] | None) -> None:
    block = codec.encode_block([make.trace(prompt=prompt)])
    last = sections(block)[-1]
    for longer in (block + extra, block[: last.start] + signed(block[last][:-4] + extra)):
        with pytest.raises(TraceDamaged):
            codec.read_block(longer)


@given(st.binary(max_size=200), st.booleans())
def test_noise_is_refused(noise: bytes, has_head: bool) -> None:
    with pytest.raises(TraceDamaged):
        codec.read_block(b"EvT\x02" + noise if has_head else noise)


@pytest.mark.parametrize("version", [0, 3, 255])
def test_an_unknown_version_says_to_update(block: bytes, version: int) -> None:
    words = f"version {version}, and this program reads version 2: update Evalboard"
    with pytest.raises(TraceDamaged, match=words):
        codec.read_block(b"EvT" + bytes([version]) + block[4:])


@pytest.mark.parametrize("slot", [-1, 2, 1000])
def test_a_slot_that_is_not_there_is_refused(block: bytes, slot: int) -> None:
    with pytest.raises(TraceDamaged, match=f"has no slot {slot}"):
        codec.read_trace(block, slot)


def lying(
    *,
    n: int = 1,
    k: int = 1,
    strays: int = 0,
    misfits: int = 0,
    prompt: int = 0,
    form: Form | None = None,
    content: bytes = b"",
    plain: bytes = b"",
    part_size: int | None = None,
    n_in_part: int = 1,
    rest: bytes = b"",
) -> bytes:
    """A block of one trace whose directory and sizes say what they are told to."""
    part = signed(packing.pack([content]) + plain)
    sizes = Sizes(*(np.array([each]) for each in (n, k, strays, misfits)))
    size = len(part) if part_size is None else part_size
    head = directory.write_directory(form or FORM, sizes, np.array([prompt]), [bytes(16)], [n_in_part], [size])
    return head + part + rest


FORM = Form(WHOLE, 1, has_ranks=False)
RANKED = Form(WHOLE, 1, has_ranks=True)
STEPS = Form(0, 1, has_ranks=False)


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        pytest.param(lying(content=bytes(2**26)), "cannot be unpacked", id="bomb-in-a-small-frame"),
        pytest.param(lying(content=bytes(6)), "cannot be unpacked", id="frame-too-long"),
        pytest.param(lying(content=bytes(4)), "unpacks to 4 bytes in place of 5", id="frame-too-short"),
        pytest.param(lying(content=bytes(5), plain=b"\0"), "cannot be unpacked", id="more-than-the-planes"),
        pytest.param(lying(n=3, content=bytes(5)), "in place of 15", id="columns-too-short"),
        pytest.param(lying(n=2, misfits=2), "more exceptions", id="misfits-without-lowers"),
        pytest.param(lying(strays=2), "more exceptions", id="more-strays-than-positions"),
        pytest.param(lying(n=2**31), "positions times", id="huge-n"),
        pytest.param(lying(n=2**24, k=20), "positions times", id="huge-table"),
        pytest.param(lying(prompt=2**30), "prompt tokens", id="huge-prompt"),
        pytest.param(lying(form=Form(25, 1, has_ranks=False)), "impossible grid", id="no-such-grid"),
        pytest.param(lying(form=Form(0, 1, has_ranks=False, plain=0x80)), "impossible grid", id="no-such-plane"),
        pytest.param(lying(form=RANKED, content=b"\1" + bytes(5)), "does not hold", id="rank-past-the-last"),
        pytest.param(lying(k=0), "does not hold", id="rank-where-there-are-none"),
        pytest.param(lying(form=RANKED, content=b"\xff" + bytes(5)), "other exceptions", id="a-stray-uncounted"),
        pytest.param(lying(strays=1, content=bytes(10)), "other exceptions", id="a-stray-that-is-none"),
        pytest.param(
            lying(k=2, form=STEPS, content=bytes(4) + b"\xff" * 3 + bytes(2)), "other exceptions", id="misfit-uncounted"
        ),
        pytest.param(
            lying(k=2, misfits=1, form=STEPS, content=bytes(9), plain=bytes(4)),
            "other exceptions",
            id="misfit-that-is-none",
        ),
        pytest.param(lying(content=bytes(5)), "does not match its digest", id="wrong-digest"),
        pytest.param(lying(content=bytes(5), part_size=3), "more than its directory", id="part-of-three-bytes"),
        pytest.param(lying(content=bytes(5), part_size=2**32 - 1), "ends too early", id="part-of-4-gigabytes"),
        pytest.param(lying(content=bytes(5), n_in_part=2), "parts hold other traces", id="part-of-more-traces"),
        pytest.param(lying(content=bytes(5), n_in_part=0), "parts hold other traces", id="part-of-no-trace"),
        pytest.param(lying(content=bytes(5), rest=b"\0"), "more than its directory", id="something-after"),
        pytest.param(b"EvT\x02\x1f\0\3" + bytes(9), "impossible number", id="counts-of-three-bytes"),
        pytest.param(b"EvT\x02\x1f\0\4" + b"\xff" * 80, "ends too early", id="four-thousand-million-traces"),
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


@pytest.mark.parametrize(("dtype", "most"), [("float32", 9.3), ("bfloat16", 7.1)])
def test_real_traces_recorded_earlier_are_still_read_and_still_take_as_little(dtype: str, most: float) -> None:
    """docs/formats.md says how they were recorded; each one's digest is checked on reading."""
    traces = codec.read_block((DATA / f"smollm2-{dtype}.evt").read_bytes())
    assert len(traces) == 40
    bare = [with_prompt(trace, None) for trace in traces[:32]]
    assert len(codec.encode_block(bare)) / sum(map(len, bare)) <= most


def test_every_real_trace_comes_back_when_stored_alone() -> None:
    for trace in codec.read_block((DATA / "smollm2-float32.evt").read_bytes()):
        assert bits(codec.read_trace(codec.encode_block([trace]), 0)) == bits(trace)
