"""The beginning of a log file, by which its format is recognised without reading all of it."""

import json
from typing import Any

from evalboard.core.document import MAX_DEPTH

HEAD_BYTES = 64 << 10

_OPENING = {"{": "}", "[": "]"}


def start(head: bytes) -> str:
    """Return a file's first characters, without the white space and the byte order mark before them."""
    return head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")


def first_object(text: str) -> dict[str, Any]:
    """Return the first JSON object of a file that begins so, or of the list that it holds; {} where none begins it.

    Where the object goes on after the first 64 KiB, or is nested deeper than is read, the fields that are complete
    until there. Never raises, and takes time in proportion to the text.
    """
    if text.startswith("["):
        text = text[1:].lstrip()
    if not text.startswith("{"):
        return {}
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        found = _cut(text)
    return found if isinstance(found, dict) else {}


def _cut(text: str) -> Any:
    """Parse a JSON text that breaks off: everything after its last complete member is left out."""
    stack: list[str] = []
    end = 0  # behind what is complete; nothing has opened or closed since
    is_quoted = is_escaped = False
    for at, char in enumerate(text):
        if is_quoted:
            is_quoted = is_escaped or char != '"'
            is_escaped = char == "\\" and not is_escaped
        elif char == '"':
            is_quoted = True
        elif char in _OPENING:
            if len(stack) == MAX_DEPTH:
                break
            stack.append(_OPENING[char])
            end = at + 1
        elif char in "}]":
            if not stack or stack[-1] != char:
                break
            stack.pop()
            end = at + 1
        elif char == ",":
            end = at
    try:
        return json.loads(text[:end] + "".join(reversed(stack)))
    except (ValueError, RecursionError):
        return None
