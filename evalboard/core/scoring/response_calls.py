"""Tool calls out of a response, in the forms in which models write them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.core.scoring.reasons import shown
from evalboard.core.scoring.response_json import Unreadable, fenced, parse, tagged


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: Mapping[str, Any]


def read_calls(text: str, extract: str) -> list[Call]:
    """Return the calls of a response in order. Raises Unreadable where it is not JSON of calls.

    A call is `{"name", "arguments"}` or holds that under "function"; its arguments may be the JSON
    text of an object. One call, a list of calls, and `{"tool_calls": [...]}` are all understood.
    """
    if extract == "tags":
        return [call for piece in tagged(text) for call in _calls_in(parse(piece))]
    return _calls_in(parse(fenced(text) if extract == "fence" else text))


def _calls_in(value: Any) -> list[Call]:
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    items = value if isinstance(value, list) else [value]
    return [_call(item) for item in items]


def _call(item: Any) -> Call:
    if isinstance(item, dict) and isinstance(item.get("function"), dict):
        item = item["function"]
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise Unreadable(f'The JSON is not a call with a "name": {shown(item)}.')
    arguments = item.get("arguments", {})
    if isinstance(arguments, str):
        arguments = parse(arguments)
    if not isinstance(arguments, dict):
        raise Unreadable(f"The arguments of {shown(item['name'])} are not an object: {shown(arguments)}.")
    return Call(item["name"], arguments)
