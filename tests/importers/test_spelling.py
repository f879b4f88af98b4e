"""Whether tokens spell the answer that came with them, and what becomes of those that do not."""

import math

import pytest

from evalboard.core.answer import AnswerParts, join_parts
from evalboard.importers.records import LoggedPosition, LoggedPositions
from evalboard.importers.spelling import SpelledTokens, spell_tokens


def positions(*tokens: str | bytes, logprob: float = -0.5, others: tuple[float, ...] = (-2.0,)) -> LoggedPositions:
    raw = [token if isinstance(token, bytes) else token.encode() for token in tokens]
    listed = [((token, logprob), *((b"other", value) for value in others)) for token in raw]
    return LoggedPositions.from_positions(
        LoggedPosition(token, logprob, row) for token, row in zip(raw, listed, strict=True)
    )


def spell(*tokens: str | bytes, text: str, **options: object) -> SpelledTokens:
    return spell_tokens(positions(*tokens), text=text, **options)  # type: ignore[arg-type]


def pieces(spelled: SpelledTokens) -> list[bytes]:
    return [position.token for position in spelled.positions or ()]


@pytest.mark.parametrize(
    ("tokens", "text", "wanted"),
    [
        (("It", " rains"), "It rains", [b"It", b" rains"]),
        (("▁It", "▁rains", "<0x0A>", "</s>"), "It rains", [b" It", b" rains", b"\n", b"</s>"]),
        (("It", "Ġrains", "Ċ", "today"), "It rains\ntoday", [b"It", b" rains", b"\n", b"today"]),
        (("Z", "Ã¼", "rich"), "Zürich", [b"Z", "ü".encode(), b"rich"]),
        (("<0xC3>", "<0xBC>", "ber"), "über", [b"\xc3", b"\xbc", b"ber"]),
        (("a", "▁", "b"), "a▁b", [b"a", "▁".encode(), b"b"]),  # the text's own character
        (("Yes", "<|im_end|>"), "Yes", [b"Yes", b"<|im_end|>"]),
        (("Yes", "\n\nUser"), "Yes", [b"Yes", b"\n\nUser"]),  # a stop text
    ],
)
def test_known_spellings_are_read_as_bytes(tokens: tuple[str, ...], text: str, wanted: list[bytes]):
    spelled = spell(*tokens, text=text)
    assert (spelled.reason, pieces(spelled)) == ("", wanted)


@pytest.mark.parametrize(
    ("tokens", "text", "reason"),
    [
        (("It", " snows"), "It rains", "spelled_otherwise"),
        (("It", "�"), "It 🌧", "spelled_otherwise"),
        ((b"", b""), "🌧", "spelled_otherwise"),
        (("_It", "_rains"), "It rains", "spelled_otherwise"),
        (("It", " ra"), "It rains", "partial"),
        ((" rains",), "It rains", "partial"),
    ],
)
def test_other_tokens_are_not_measured(tokens: tuple[str | bytes, ...], text: str, reason: str):
    spelled = spell(*tokens, text=text)
    assert spelled.reason == reason
    assert len(pieces(spelled)) == len(tokens)  # kept, to be shown


def test_thinking_before_the_answer_is_measured_as_thinking():
    spelled = spell("<think>", "\nHm", " hm", "\n</think>", "\n\n", "Rain", text="Rain", reasoning="Hm hm")
    assert (spelled.reason, spelled.n_reasoning_tokens) == ("", 5)
    alone = spell("Hm", " hm", text="Rain", reasoning="Hm hm")
    assert (alone.reason, alone.n_reasoning_tokens) == ("covers_thinking", 2)
    cut = spell("Hm", " hm", text="", reasoning="Hm hm")
    assert (cut.reason, cut.n_reasoning_tokens) == ("", 2)
    other = spell("Well", "Rain", text="Rain", reasoning="Hm hm")
    assert other.reason == "spelled_otherwise"


def test_calls_are_written_by_each_model_in_its_own_way():
    called = join_parts(AnswerParts(content="Look:", calls=({"name": "find", "arguments": "{}"},)))
    assert spell("Look:", "<call>", "find", "()", text=called).reason == ""


def test_numbers_that_are_none():
    zero = positions("Ra", "in", logprob=0.0, others=())
    assert spell_tokens(zero, text="Rain").reason == "all_zero"
    assert spell_tokens(positions("Ra", "in", logprob=0.0), text="Rain").reason == "placeholder_logprobs"
    assert spell_tokens(positions("Ra", "in", logprob=0.0, others=(-18.0,)), text="Rain").reason == ""
    assert spell_tokens(positions("Ra", "in", logprob=math.nan, others=()), text="Rain").reason == ""
    assert spell_tokens(positions("Rain", logprob=-9999.0), text="Rain").reason == "not_listed"


def drafted(n_zero: int, *zero: tuple[bytes, float], n: int = 40, rest: tuple[tuple[bytes, float], ...] = ()) -> str:
    """Why an answer of n tokens is not measured of which some have a logprob of exactly 0, beside the `zero` tokens."""
    kept = rest or ((b"a", -0.3), (b"b", -1.5))
    rows = [LoggedPosition(b"a", 0.0, zero)] * n_zero + [LoggedPosition(b"a", kept[0][1], kept)] * (n - n_zero)
    return spell_tokens(LoggedPositions.from_positions(rows), text="a" * n).reason


def test_a_logprob_of_0_beside_a_likely_token_is_a_placeholder_of_a_draft():
    own = (b"a", 0.0)
    assert drafted(2, own, (b"b", -1.5)) == drafted(2, (b"a", -0.3), (b"b", -1.5)) == "placeholder_logprobs"
    assert drafted(1, own, (b"b", -1.5)) == ""  # less than 5 % of the answer
    assert drafted(2, own) == drafted(2) == "placeholder_logprobs"  # where the other positions list a rival


def test_a_token_that_is_certain_has_a_logprob_of_0():
    own = (b"a", 0.0)
    assert [drafted(30, own, (b"b", other)) for other in (-17.0, -math.inf, -9999.0)] == [""] * 3
    assert drafted(30, own, rest=((b"a", -0.3),)) == ""  # a server that lists one token
    assert drafted(30, rest=((b"a", -0.3),)) == ""


def test_a_placeholder_is_no_alternative_and_a_forbidden_token_is_one():
    spelled = spell_tokens(positions("Ra", "in", others=(-2.0, -9999.0, -math.inf)), text="Rain")
    assert spelled.positions is not None
    assert spelled.reason == ""
    assert [len(position.alternatives) for position in spelled.positions] == [3, 3]
    certain = spell_tokens(positions("Rain", logprob=0.0, others=(-9999.0,)), text="Rain")
    assert certain.reason == "not_listed"


def test_several_tokens_under_one_logprob():
    assert spell("Rain", " falls", " now", text="Rain falls now", n_counted=9).reason == "merged"
    assert spell("Rain", " falls", " now", text="Rain falls now", n_counted=4).reason == ""  # the end is not listed
