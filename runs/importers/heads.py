"""The beginning of a log file, by which its format is recognised without reading all of it."""

import json
from typing import Any

from runs.importers.files import LogFile

HEAD_BYTES = 64 << 10

_OPENING = {"{": "}", "[": "]"}


def first_object(file: LogFile) -> dict[str, Any]:
    """Return the first JSON object of a file, or of the list that it holds; {} where none begins it.

    Where the object goes on after the first 64 KiB, the fields that are complete until there. Never raises.
    """
    text = start(file)
    if text.startswith("["):
        text = text[1:].lstrip()
    if not text.startswith("{"):
        return {}
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        found = _cut(text)
    return found if isinstance(found, dict) else {}


def start(file: LogFile) -> str:
    """Return the file's first characters, without the white space and the byte order mark before them."""
    return file.head(HEAD_BYTES).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")


def _cut(text: str) -> Any:
    """Parse a JSON text that breaks off: everything after its last complete member is left out."""
    stack: list[str] = []
    end, closing = 0, ""
    is_quoted = is_escaped = False
    for at, char in enumerate(text):
        if is_quoted:
            is_quoted = is_escaped or char != '"'
            is_escaped = char == "\\" and not is_escaped
        elif char == '"':
            is_quoted = True
        elif char in _OPENING:
            stack.append(_OPENING[char])
            end, closing = at + 1, "".join(reversed(stack))
        elif char in "}]":
            if not stack or stack.pop() != char:
                break
            end, closing = at + 1, "".join(reversed(stack))
        elif char == ",":
            end, closing = at, "".join(reversed(stack))
    try:
        return json.loads(text[:end] + closing)
    except (ValueError, RecursionError):
        return None
