"""A window around the place where two answers part: the same text before it on both sides, and every cut says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.compare import cut_hit, cut_text, cut_tokens
from evalboard.core.compare.excerpt import AFTER, BEFORE, TOKENS_AROUND
from evalboard.core.trace import Vocabulary, pack_vocabulary
from tests import make

WORDS = [b"", b'{"city":', b' "', b"Paris", b"Oslo", b'"}\n', "—".encode()[:2], "—".encode()[2:], b" x"]
VOCABULARY = Vocabulary.unpack(pack_vocabulary(WORDS, end_ids=[0]))
PARIS, OSLO = [1, 2, 3, 5, 0], [1, 2, 4, 5, 0]


def test_both_sides_have_the_same_text_before_their_own_token() -> None:
    ours, theirs = (cut_tokens(make.trace(tokens), VOCABULARY, 2) for tokens in (PARIS, OSLO))
    assert ours.before == theirs.before == '{"city": "'
    assert (ours.token, theirs.token) == ("Paris", "Oslo")
    assert ours.after == '"}⏎⟨end⟩'
    assert not ours.is_cut


def test_spaces_of_the_token_are_drawn_and_those_around_it_are_not() -> None:
    cut = cut_tokens(make.trace([1, 2, 8, 8]), VOCABULARY, 1)
    assert (cut.before, cut.token, cut.after) == ('{"city":', '·"', " x x")


def test_a_side_that_has_ended_says_so_where_the_other_goes_on() -> None:
    assert cut_tokens(make.trace([1, 2]), VOCABULARY, 2).token == "⟨end⟩"
    assert cut_tokens(make.trace(PARIS), VOCABULARY, 4).token == "⟨end⟩"


def test_half_a_character_at_the_edge_of_the_window_is_left_out() -> None:
    assert cut_tokens(make.trace([1, 6, 7]), VOCABULARY, 1).after == " x"[:0]
    assert cut_tokens(make.trace([6, 7, 8, 3]), VOCABULARY, 1).before == ""


@given(st.lists(st.integers(1, 5), min_size=1, max_size=300), st.data())
def test_a_window_of_tokens_never_outgrows_its_line(tokens: list[int], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(tokens) - 1))
    cut = cut_tokens(make.trace(tokens), VOCABULARY, at)
    text = b"".join(WORDS[token] for token in tokens[:at]).decode().replace("\n", "⏎")
    assert len(cut.before) <= BEFORE
    assert len(cut.after) <= AFTER
    assert text.endswith(cut.before)
    assert cut.is_cut == (len(text) > BEFORE or at > TOKENS_AROUND)


@pytest.mark.parametrize(
    ("text", "at", "parts"),
    [
        ("I can move it.", 2, ("I ", "can", " move it.")),
        ("I can", 5, ("I can", "⟨end⟩", "")),
        ('{"a": 1}', 6, ('{"a": ', "1", "}")),
        ("a\nb", 1, ("a", "⏎", "b")),
        ("same", None, ("same", "", "")),
    ],
)
def test_without_tokens_the_word_that_differs_is_outlined(text: str, at: int | None, parts: tuple[str, ...]) -> None:
    cut = cut_text(text, at)
    assert (cut.before, cut.token, cut.after) == parts
    assert not cut.is_cut


def test_a_long_text_is_cut_to_what_stands_around_the_place() -> None:
    cut = cut_text("x" * 500 + "y" * 500, 500)
    assert (cut.before, cut.is_cut) == ("x" * BEFORE, True)
    assert len(cut.after) == AFTER


def test_what_is_looked_for_is_shown_where_it_stands_nearest_to_the_flip() -> None:
    text = "Paris and more, " + "x" * 200 + " paris."
    cut = cut_hit(text, "PARIS", 190)
    assert cut is not None
    assert (cut.token, cut.after, cut.is_cut, cut.is_hit) == ("paris", ".", True, True)
    assert cut.before == "x" * (BEFORE - 1) + " "
    first = cut_hit(text, "paris", None)
    assert first is not None
    assert (first.before, first.token, first.is_cut) == ("", "Paris", False)


@pytest.mark.parametrize("words", ["Oslo", "", "P.ris"])
def test_an_answer_without_the_words_is_cut_nowhere(words: str) -> None:
    assert cut_hit("Paris", words, 0) is None
