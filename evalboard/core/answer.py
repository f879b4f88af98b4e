"""Split an answer into text, refusal and tool calls, and join them to one text and back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.core.digest import canonical_json

_CONTENT, _REFUSAL, _CALLS = "content", "refusal", "tool_calls"


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """The parts of an answer. `calls` are functions as the API gives them: `{"name", "arguments"}`."""

    content: str = ""
    refusal: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()

    @property
    def text(self) -> str:
        """Return the answer's content, or its refusal if it has no content."""
        return self.content or self.refusal


def join_parts(parts: AnswerParts) -> str:
    """Return an answer as the one text that is stored and compared.

    Words alone are that text. Calls alone are the JSON list of them. Several parts are a JSON object of `content`,
    `refusal` and `tool_calls`. Blank words next to another part are no part. The JSON is canonical, so equal answers
    have equal texts.
    """
    words = {_CONTENT: parts.content, _REFUSAL: parts.refusal}
    by_name: dict[str, Any] = {name: text for name, text in words.items() if text.strip()}
    if parts.calls:
        by_name[_CALLS] = list(parts.calls)
    if len(by_name) > 1:
        return _written(by_name)
    return _written(by_name[_CALLS]) if parts.calls else next(iter(by_name.values()), parts.text)


def split_parts(answer: str) -> AnswerParts:
    """Return the parts that `join_parts` made a text of; any other text is content.

    A model that writes such canonical JSON itself, to the byte, counts as having made the calls.
    """
    if not answer.startswith(('{"content":', '{"refusal":', "[{")):
        return AnswerParts(content=answer)
    try:
        value = json.loads(answer)
        is_joined = _written(value) == answer
    except (ValueError, RecursionError):
        is_joined = False
    if not is_joined:
        return AnswerParts(content=answer)
    by_name: Mapping[str, Any] = {_CALLS: value} if isinstance(value, list) else value
    at_least = 1 if isinstance(value, list) else 2
    if not _is_held(by_name, at_least=at_least):
        return AnswerParts(content=answer)
    return AnswerParts(by_name.get(_CONTENT, ""), by_name.get(_REFUSAL, ""), tuple(by_name.get(_CALLS, ())))


def _is_held(by_name: Mapping[str, Any], *, at_least: int) -> bool:
    """Tell whether these are so many parts or more, each as `join_parts` writes it."""
    words = [by_name[name] for name in (_CONTENT, _REFUSAL) if name in by_name]
    calls = by_name.get(_CALLS, [])
    return (
        len(by_name) >= at_least
        and by_name.keys() <= {_CONTENT, _REFUSAL, _CALLS}
        and all(isinstance(text, str) and text.strip() for text in words)
        and isinstance(calls, list)
        and bool(calls) == (_CALLS in by_name)
        and all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls)
    )


def _written(value: Any) -> str:
    return canonical_json(value).decode("utf-8", "surrogatepass")


def as_function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the function that a tool call of an API asks for, without the call's random id.

    A custom tool's `input` is its arguments.
    """
    given = call.get("function") or call.get("custom") or call
    known = dict(given) if isinstance(given, Mapping) else {"arguments": given}
    if "input" in known and "arguments" not in known:
        known["arguments"] = known.pop("input")
    name = known.get("name")
    fields = {field: value for field, value in known.items() if field not in ("id", "index", "type", "call_id")}
    return {**fields, "name": name if isinstance(name, str) else ""}
