"""A vocabulary survives packing, and every token can be seen when it is drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.trace.vocabulary import Vocabulary, VocabularyDamaged, pack_vocabulary

TOKENS: list[bytes | None] = [
    b"Hello",  # 0
    b" world",
    b"\n",
    "—".encode()[:2],  # 3: two bytes of an em dash
    "—".encode()[2:] + b" x",  # 4: its last byte, and more
    b"<|im_start|>",
    b"<|im_end|>",  # 6: ends an answer
    None,  # 7: the id stands for nothing
    b"\x0b",
    "東".encode(),
    b"\t\xff",  # 10
    b"",
    "\u200b\u00a0e\u0301".encode(),
    b"\r\n\n",
]


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary.unpack(pack_vocabulary(TOKENS, end_ids=[6]))


@pytest.mark.parametrize(
    ("ids", "drawn"),
    [
        ([0, 1], ["Hello", "·world"]),
        ([2], ["⏎"]),
        pytest.param([3, 4], ["⟨0xE2⟩⟨0x80⟩", "⟨0x94⟩·x"], id="a-character-over-two-tokens"),
        pytest.param([5, 6], ["<|im_start|>", "⟨end⟩"], id="special-and-end"),
        pytest.param([7, 99, -1], ["⟨token 7⟩", "⟨token 99⟩", "⟨token -1⟩"], id="ids-that-stand-for-nothing"),
        ([8], ["⟨U+000B⟩"]),
        ([9], ["東"]),
        pytest.param([10], ["⟨U+0009⟩⟨0xFF⟩"], id="a-byte-that-is-never-text"),
        pytest.param([11], ["⟨token 11⟩"], id="a-token-without-bytes"),
        pytest.param([12], ["⟨U+200B⟩⟨U+00A0⟩e\u0301"], id="invisible-but-not-accents"),
        ([13], ["⟨U+000D⟩⏎⏎"]),
        ([], []),
    ],
)
def test_every_token_can_be_seen(vocabulary: Vocabulary, ids: list[int], drawn: list[str]) -> None:
    assert vocabulary.draw(ids) == drawn


@given(st.lists(st.none() | st.binary(max_size=12)), st.sets(st.integers(0, 2**31 - 1), max_size=4))
def test_unpacking_gives_back_what_was_packed(tokens: list[bytes | None], end_ids: set[int]) -> None:
    again = Vocabulary.unpack(pack_vocabulary(tokens, end_ids))
    assert [again.token_bytes(index) for index in range(len(again))] == tokens
    assert again.end_ids == end_ids


def test_ids_outside_are_unknown(vocabulary: Vocabulary) -> None:
    assert vocabulary.token_bytes(len(TOKENS)) is None
    assert vocabulary.token_bytes(-1) is None


def test_many_at_once_are_the_same(vocabulary: Vocabulary) -> None:
    ids = [*range(-2, len(TOKENS) + 2), 3, 3, 2**31 - 1]
    assert vocabulary.many_bytes(np.array(ids, np.int32)) == [vocabulary.token_bytes(each) for each in ids]
    empty = Vocabulary.unpack(pack_vocabulary([]))
    assert empty.many_bytes(np.array([0, 1], np.int32)) == [None, None]


def test_packing_is_the_same_each_time() -> None:
    assert pack_vocabulary(TOKENS, [6, 5]) == pack_vocabulary(TOKENS, [5, 6, 6])


@pytest.mark.parametrize("position", [0, 3, 4, 9, 20, -1])
def test_a_damaged_byte_is_refused(position: int) -> None:
    data = bytearray(pack_vocabulary(TOKENS, [6]))
    data[position] ^= 0x41
    with pytest.raises(VocabularyDamaged):
        Vocabulary.unpack(bytes(data))


@pytest.mark.parametrize("data", [b"", b"EVV1", b"EVV2" + pack_vocabulary(TOKENS)[4:], pack_vocabulary(TOKENS)[:-7]])
def test_what_is_no_whole_vocabulary_is_refused(data: bytes) -> None:
    with pytest.raises(VocabularyDamaged):
        Vocabulary.unpack(data)


def test_a_vocabulary_that_says_more_than_it_holds_is_refused() -> None:
    import zstandard

    short = b"EVV1" + zstandard.ZstdCompressor(write_checksum=True).compress(b"\xff\xff\xff\x7f" + b"\0" * 8)
    with pytest.raises(VocabularyDamaged):
        Vocabulary.unpack(short)


def test_two_agree_where_one_goes_on_from_the_other() -> None:
    first, longer, other, unknown = (
        Vocabulary.unpack(pack_vocabulary(tokens))
        for tokens in ([b"a", b"bc"], [b"a", b"bc", b"d"], [b"ab", b"c"], [b"a", None])
    )
    assert first.agrees_with(longer)
    assert longer.agrees_with(first)
    assert not longer.agrees_with(other), "the same bytes, cut otherwise"
    assert not first.agrees_with(unknown)


def test_ids_beginning_looks_past_spaces_and_into_no_neighbour() -> None:
    words = [b"red", b" red", b"\n red", b"redder", b" ", None, b"bored", b"re", b"d red", b"Red"]
    vocabulary = Vocabulary.unpack(pack_vocabulary(words))
    assert vocabulary.ids_beginning(b"red") == [0, 1, 2, 3]
    assert vocabulary.ids_beginning(b"redde") == [3]
    assert vocabulary.ids_beginning(b"redred") == vocabulary.ids_beginning(b"nothing") == []
    with pytest.raises(ValueError, match="Every token"):
        vocabulary.ids_beginning(b"")
