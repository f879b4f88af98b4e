"""A request of production: what of it is decoded, and what is named as not sent."""

from typing import Any

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.core.suite import ChatBody, read_chat_body

ASKED = [{"role": "user", "content": "Name a colour."}]


def read(**fields: Any) -> ChatBody:
    return read_chat_body({"messages": ASKED, **fields})


def test_what_a_client_sends_is_read_under_the_names_of_either_server() -> None:
    body = read(
        model="paint-prod",
        temperature=0.7,
        top_p=0.9,
        top_k=-1,
        seed=7,
        max_completion_tokens=32,
        max_tokens=64,
        stop="END",
        logprobs=True,
        top_logprobs=5,
        chat_template_kwargs={"enable_thinking": False},
    )
    assert (body.model, body.messages, body.tools) == ("paint-prod", tuple(ASKED), None)
    assert body.sampling == {
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 0,
        "seed": 7,
        "logprobs": 5,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert (body.max_tokens, body.stop, body.not_sent) == (32, ("END",), ())


def test_what_is_not_sent_is_named_and_what_may_change_the_answer_apart() -> None:
    body = read(
        stream=True,
        stream_options={"include_usage": True},
        user="u-1",
        n=2,
        response_format={"type": "json_object"},
        tool_choice="required",
        foo=1,
        reasoning_tags={"start": "<a>", "end": "<b>"},
    )
    assert set(body.not_sent) == {
        "stream",
        "stream_options",
        "user",
        "n",
        "response_format",
        "tool_choice",
        "foo",
        "reasoning_tags",
    }
    assert set(body.changes_tokens) == {"n", "response_format", "tool_choice", "foo", "reasoning_tags"}


def test_values_that_ask_for_nothing_are_not_named() -> None:
    body = read(n=1, stream=False, tool_choice="auto", response_format={"type": "text"}, logit_bias={}, user=None)
    assert body.not_sent == ()
    assert read(chat_template_kwargs={}).sampling == {}
    assert read(logprobs=True, top_logprobs=1).sampling == {}  # two are kept anyway


def test_contents_in_parts_are_joined_and_fields_beside_a_message_named() -> None:
    parts = [{"type": "text", "text": "Name"}, {"type": "text", "text": "a colour."}]
    body = read_chat_body({"messages": [{"role": "user", "content": parts, "refusal": None, "audio": {"id": "a"}}]})
    assert body.messages == ({"role": "user", "content": "Name\na colour."},)
    assert (body.not_sent, body.changes_tokens) == (("messages[0].audio",), ("messages[0].audio",))


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ([], "body"),
        ("text", "body"),
        ({}, "body.messages"),
        ({"messages": []}, "body.messages"),
        ({"messages": ["hi"]}, "body.messages[0]"),
        ({"messages": [{"role": "bot", "content": "hi"}]}, "body.messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "body.messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": "a\0b"}]}, "body.messages[0].content"),
        ({"messages": ASKED, "temperature": "0.7"}, "body.temperature"),
        ({"messages": ASKED, "top_logprobs": True}, "body.top_logprobs"),
        ({"messages": ASKED, "max_tokens": 0}, "body.max_tokens"),
        ({"messages": ASKED, "max_completion_tokens": 10**6}, "body.max_completion_tokens"),
        ({"messages": ASKED, "stop": 3}, "body.stop"),
        ({"messages": ASKED, "tools": [{"name": "f"}]}, "body.tools[0]"),
        ({"messages": ASKED, "chat_template_kwargs": {"chat_template": "x"}}, "body.chat_template_kwargs"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(body: Any, path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_chat_body(body)
    assert path in refused.value.fields
    assert path in refused.value.detail
