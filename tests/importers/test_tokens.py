"""Logprobs of OpenAI-compatible servers as positions: nothing sorted, nothing invented."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.errors import InvalidInput
from evalboard.importers import tokens
from evalboard.importers.records import LoggedPosition, LoggedPositions
from evalboard.importers.tokens import MAX_TOKEN_ID, positions, read_ids
from tests.importers.openai_logs import entry


def content(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"content": list(entries)}


def test_alternatives_keep_the_logs_order_and_exact_ties() -> None:
    found = positions(
        content(
            entry("Rain", -1.719, ("Rain", -1.719), ("The", -1.581)),  # sampled: the chosen one stands first
            entry(" is", -0.5, (" is", -0.5), (" was", -0.5)),
            entry("<|im_end|>", -0.1),
        )
    )
    assert found == (
        LoggedPosition(b"Rain", -1.719, ((b"Rain", -1.719), (b"The", -1.581))),
        LoggedPosition(b" is", -0.5, ((b" is", -0.5), (b" was", -0.5))),
        LoggedPosition(b"<|im_end|>", -0.1),
    )


def test_half_a_character_has_no_bytes_and_keeps_its_id() -> None:
    found = positions(
        content(entry("", -2.1, ("", -2.1), ("I", -2.7)), entry("", -0.1), entry("🦜", -0.2)), [10, 11, 12]
    )
    assert found is not None
    assert [(one.token, one.token_id) for one in found] == [(b"", 10), (b"", 11), ("🦜".encode(), 12)]
    assert found[0].alternatives == ((b"", -2.1), (b"I", -2.7))


def test_ids_of_another_number_than_the_tokens_are_nobodys() -> None:
    found = positions(content(entry("a", -1.0), entry("b", -1.0)), [7])
    assert found is not None
    assert [one.token_id for one in found] == [None, None]


def test_tokens_written_as_ids_have_their_bytes_where_one_was_chosen() -> None:
    """vLLM gives a chosen token its own bytes, and an alternative the bytes of the words."""
    chosen = {**entry("token_id:504", -1.5, ("token_id:504", -1.5), ("token_id:9", -1.7)), "bytes": list(b"The")}
    other = {**entry("token_id:9", -0.2, ("token_id:9", -0.2), ("token_id:8", -2.0)), "bytes": list(b" rain")}
    assert positions(content(chosen, other)) == (
        LoggedPosition(b"The", -1.5, ((b"The", -1.5), (b" rain", -1.7)), 504),
        LoggedPosition(b" rain", -0.2, ((b" rain", -0.2), (b"token_id:8", -2.0)), 9),
    )


def test_the_arrays_of_old_completions_give_the_same_positions() -> None:
    found = positions(
        {
            "tokens": [" Paris", "."],
            "token_logprobs": [None, -0.4],  # an echoed prompt's first token has none
            "top_logprobs": [None, {".": -0.4, ",": -1.6}],
            "text_offset": [0, 6],
        }
    )
    assert found is not None
    assert (found[0].token, found[0].alternatives) == (b" Paris", ())
    assert math.isnan(found[0].logprob)
    assert found[1] == LoggedPosition(b".", -0.4, ((b".", -0.4), (b",", -1.6)))


def test_a_forbidden_token_keeps_what_the_server_wrote_and_an_absent_logprob_is_no_alternative() -> None:
    forbidden = entry("a", -0.1, ("a", -0.1), ("b", -9999.0))
    forbidden["top_logprobs"].append({"token": "c", "logprob": None, "bytes": [99]})
    assert positions(content(forbidden)) == (LoggedPosition(b"a", -0.1, ((b"a", -0.1), (b"b", -9999.0))),)


@pytest.mark.parametrize("logprobs", [None, {}, {"content": None}, {"content": []}, {"tokens": []}])
def test_a_log_without_tokens_has_no_positions(logprobs: dict[str, Any] | None) -> None:
    assert positions(logprobs, [1, 2]) is None


def test_bytes_that_are_left_out_are_those_of_the_text() -> None:
    assert positions({"content": [{"token": "é", "logprob": -1, "bytes": None}]}) == (
        LoggedPosition("é".encode(), -1.0),
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([], "logprobs must be an object"),
        ({"content": {}}, "logprobs.content must be a list"),
        (content({"logprob": -1}), r"content\[0\].token must be a text"),
        (content({"token": "a", "logprob": "low"}), r"content\[0\].logprob must be a logprob"),
        (content({"token": "a", "logprob": True}), "must be a logprob"),
        (content({"token": "a", "logprob": 10**300}), "must be a logprob"),
        (content({"token": "a", "logprob": -1, "bytes": [256]}), "from 0 to 255"),
        (content({"token": "a", "logprob": -1, "bytes": ["a"]}), "from 0 to 255"),
        (content({**entry("a", -1.0), "top_logprobs": [3]}), r"top_logprobs\[0\] must be an object"),
        ({"tokens": ["a", "b"], "token_logprobs": [-1.0]}, "one length"),
        ({"tokens": [1]}, r"tokens\[0\] must be a text"),
        ({"tokens": ["a"], "top_logprobs": [[1]]}, r"top_logprobs\[0\] must be an object"),
    ],
)
def test_what_is_no_list_of_tokens_is_refused_with_its_place(wrong: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        positions(wrong)


@pytest.mark.parametrize("wrong", ["1", [True], [-1], [MAX_TOKEN_ID + 1], [1.0], [None]])
def test_ids_that_no_trace_can_hold_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="token_ids must"):
        read_ids(wrong)


ODD = st.sampled_from(
    [None, True, 0, -1, 2**70, 10**300, 1e39, -0.0, "", "x", "token_id:7", "\ud800", [], [0, 255], [256], [True], {}]
)
ENTRIES = st.fixed_dictionaries(
    {
        "token": st.text(max_size=2),
        "logprob": st.floats(-1e3, 0) | st.integers(-9, 0),
        "bytes": st.binary(max_size=2).map(list),
    }
)
ROWS = st.builds(
    lambda entry, others: {**entry, "top_logprobs": others}, ENTRIES, st.lists(ENTRIES, max_size=2) | st.none()
)


@given(
    st.lists(ROWS, max_size=4),
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["token", "logprob", "bytes", "top_logprobs", None]), ODD),
        max_size=2,
    ),
)
@pytest.mark.drawn
def test_columns_are_read_as_single_positions_are(entries: list[Any], odd: list[tuple[int, str | None, Any]]) -> None:
    """Whatever stands in a list of tokens: the same positions, or the same words."""
    for at, name, value in odd:
        if at < len(entries) and name is None:
            entries[at] = value
        elif at < len(entries) and isinstance(entries[at], dict):
            entries[at] = {**entries[at], name: value}
    assert one_by_one(entries) == in_columns(entries)


def in_columns(entries: list[Any]) -> Any:
    try:
        return repr(positions({"content": entries}) or ())
    except InvalidInput as refused:
        return refused.detail


def one_by_one(entries: list[Any]) -> Any:
    try:
        return repr(LoggedPositions.from_positions(tokens._chat_positions(entries)) or ())
    except InvalidInput as refused:
        return refused.detail
