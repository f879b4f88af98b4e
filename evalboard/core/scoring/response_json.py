"""JSON out of a response, as strict or as forgiving as a scorer asks."""

import json
import re
from typing import Any

from evalboard.core.document import MAX_DEPTH, finite_float, is_too_deep, refuse_constant
from evalboard.core.scoring.reasons import shown

# The opening line of a code fence; the closing one is looked for with str.find.
_FENCE = re.compile(r"^[ \t]{0,3}```[^\n`]*\n", re.MULTILINE)
_TAG, _END_TAG = "<tool_call>", "</tool_call>"


class UnreadableJson(Exception):
    """The response has no JSON to judge; the message is the reason of its score of 0."""


def fenced(text: str) -> str:
    """Return the content of the first code fence, up to its end or the text's; the whole text without one."""
    opening = _FENCE.search(text)
    if opening is None:
        return text
    end = text.find("```", opening.end())
    return text[opening.end() :] if end < 0 else text[opening.end() : end]


def tagged(text: str) -> list[str]:
    """Return the content of each <tool_call> … </tool_call>, in order."""
    parts = []
    start = text.find(_TAG)
    while start >= 0:
        end = text.find(_END_TAG, start)
        end = len(text) if end < 0 else end
        parts.append(text[start + len(_TAG) : end])
        start = text.find(_TAG, end)
    return parts


def parse_response_json(text: str) -> Any:
    """Return the JSON value that the text is. Raises UnreadableJson, and nothing else, on any other text."""
    if not text.strip():
        raise UnreadableJson("The answer is empty, which is not JSON.")
    try:
        value = json.loads(text.strip(), parse_constant=refuse_constant, parse_float=finite_float)
    except json.JSONDecodeError as error:
        place = f"{error.msg.removesuffix(' at')} at character {error.pos + 1}"  # "Unterminated string starting at"
        raise UnreadableJson(f"Not JSON: {place}, before {shown(text.strip()[error.pos :], 20)}.") from None
    except RecursionError:
        raise UnreadableJson(f"The JSON is nested more than {MAX_DEPTH} levels deep.") from None
    except ValueError as error:  # numbers without end: NaN, 1e999, integers of thousands of digits
        raise UnreadableJson(f"Not JSON: {error}.") from None
    if is_too_deep(value):
        raise UnreadableJson(f"The JSON is nested more than {MAX_DEPTH} levels deep.")
    return value
