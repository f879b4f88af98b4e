"""An answer's parts as one text, and back."""

import pytest

from evalboard.core.answer import AnswerParts, as_function, join_parts, split_parts
from evalboard.core.scoring import score

CALL = {"name": "capital", "arguments": '{"city": "Oslo"}'}
WRITTEN = r'{"arguments":"{\"city\": \"Oslo\"}","name":"capital"}'
TARGET = {"name": "capital", "arguments": {"city": ["Oslo"]}}


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (AnswerParts("Oslo.\n"), "Oslo.\n"),
        (AnswerParts(), ""),
        (AnswerParts(" \n"), " \n"),
        (AnswerParts(refusal="No."), "No."),
        (AnswerParts(calls=(CALL,)), f"[{WRITTEN}]"),
        (AnswerParts("\n\n", calls=(CALL,)), f"[{WRITTEN}]"),
        (AnswerParts("Wait.\n", calls=(CALL, CALL)), f'{{"content":"Wait.\\n","tool_calls":[{WRITTEN},{WRITTEN}]}}'),
        (AnswerParts("Hm.", "No."), '{"content":"Hm.","refusal":"No."}'),
        (AnswerParts("", "No.", (CALL,)), f'{{"refusal":"No.","tool_calls":[{WRITTEN}]}}'),
    ],
)
def test_no_part_displaces_another(parts: AnswerParts, text: str) -> None:
    assert join_parts(parts) == text
    assert join_parts(split_parts(text)) == text
    assert split_parts(text).calls == parts.calls


@pytest.mark.parametrize(
    "text",
    [
        '{"content":"Oslo."}',
        '{"content":"Oslo.","tool_calls":[]}',
        '{"content": "Oslo.", "tool_calls": [{"name": "x"}]}',
        '{"content":"Oslo.","refusal":5}',
        '{"content":"Oslo.","mood":"good"}',
        '[{"city":"Oslo"}]',
        "[{",
        "[{" * 50_000,
        "null",
    ],
)
def test_other_json_is_what_the_model_said(text: str) -> None:
    assert split_parts(text) == AnswerParts(text)


def test_a_call_is_known_by_its_function_alone() -> None:
    assert as_function({"id": "random", "type": "function", "function": CALL}) == CALL
    assert as_function({"type": "custom", "custom": {"name": "run", "input": "ls"}}) == {
        "name": "run",
        "arguments": "ls",
    }
    assert as_function({"id": "random"}) == {"name": ""}


@pytest.mark.parametrize("extract", ["none", "fence", "tags"])
@pytest.mark.parametrize("words", ["", "Let me look that up.", "\n\n"])
def test_calls_next_to_words_are_scored(words: str, extract: str) -> None:
    text = join_parts(AnswerParts(words, calls=(CALL,)))
    spec = {"kind": "tool_calls", "extract": extract}
    assert score(spec, text=text, target=TARGET).value == 1.0
    assert score(spec | {"reads": "whole"}, text=text, target=TARGET, thinking="Hm.").value == 1.0
    wrong = {"name": "capital", "arguments": {"city": ["Rome"]}}
    assert score(spec, text=text, target=wrong).value == 0.0


@pytest.mark.parametrize(
    ("spec", "target"),
    [({"kind": "exact"}, 'It is\n"7".'), ({"kind": "number"}, 7), ({"kind": "regex", "pattern": r'"(\d)"\.$'}, "7")],
)
def test_scorers_of_text_read_the_words_next_to_calls(spec: dict[str, str], target: str | int) -> None:
    call = {"name": "add", "arguments": '{"a": 99}'}
    assert score(spec, text=join_parts(AnswerParts('It is\n"7".', calls=(call,))), target=target).value == 1.0


def test_scorers_of_text_read_calls_alone_as_their_json() -> None:
    text = join_parts(AnswerParts(calls=(CALL,)))
    assert score({"kind": "contains"}, text=text, target="capital").value == 1.0
