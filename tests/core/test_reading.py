"""Traces of many blocks in one go: the same as block by block, from no more bytes than are asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.errors import TraceDamaged
from evalboard.core.trace import codec
from evalboard.core.trace.codec import Reading
from evalboard.core.trace.directory import start_size
from evalboard.core.trace.trace import TokenTrace
from evalboard.core.trace.trace_columns import TraceColumns
from tests import make
from tests.core.test_codec import any_traces, bits


def read(blocks: list[bytes], places: list[tuple[int, int]]) -> TraceColumns:
    """As a store reads: each block's start, and then the pieces that are named."""
    reading = Reading([block[: start_size(block)] for block in blocks], places)
    return reading.columns([blocks[block][first : first + size] for block, first, size in reading.pieces])


@given(st.lists(st.lists(any_traces(), min_size=1, max_size=3), max_size=4), st.data())
def test_traces_come_in_the_order_of_their_places(stored: list[list[TokenTrace]], data: st.DataObject) -> None:
    everywhere = [(block, slot) for block, traces in enumerate(stored) for slot in range(len(traces))]
    places = data.draw(st.lists(st.sampled_from(everywhere), max_size=8)) if everywhere else []
    columns = read([codec.encode_block(traces) for traces in stored], places)
    assert [bits(columns.trace(at))[:4] for at in range(len(columns))] == [
        bits(stored[block][slot])[:4] for block, slot in places
    ]


def test_one_of_many_traces_takes_a_few_of_their_bytes() -> None:
    traces = [make.trace("an answer of two hundred letters" * 6, seed=seed) for seed in range(32)]
    block = codec.encode_block(traces)
    reading = Reading([block[: start_size(block)]], [(0, 9)])
    (piece,) = reading.pieces
    assert start_size(block) + piece.size < len(block) / 4
    assert reading.columns([block[piece.offset : piece.offset + piece.size]]).trace(0).digest == traces[9].digest


def test_a_damaged_piece_is_refused() -> None:
    block = bytearray(codec.encode_block([make.trace("an answer"), make.trace("another")]))
    block[-6] ^= 1
    with pytest.raises(TraceDamaged):
        read([bytes(block)], [(0, 1)])


def test_a_slot_that_is_not_there_is_refused_before_anything_is_read() -> None:
    with pytest.raises(TraceDamaged, match="holds 1 traces and has no slot 1"):
        Reading([codec.encode_block([make.trace()])], [(0, 1)])
