"""The files of a log as they were uploaded, and their beginnings, by which formats are recognised."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evalboard.core.document import MAX_DEPTH

HEAD_BYTES = 64 << 10

_OPENING = {"{": "}", "[": "]"}


@dataclass(frozen=True)
class LogFile:
    """One uploaded file: the name that its sender gave, which is never used as a path, and where it lies for now.

    Its beginning is read and parsed once, however many formats look at it.
    """

    name: str
    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    @cached_property
    def sha256(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def start(self) -> str:
        """Return the first characters, without the white space before them."""
        return start_of(self.head(HEAD_BYTES))

    @cached_property
    def first_object(self) -> dict[str, Any]:
        """Return the first JSON object in it, as far as its beginning holds it; {} where it does not begin with one."""
        return first_object_of(self.start)

    def head(self, n: int = 4096) -> bytes:
        """Return the first bytes, by which a format is recognised."""
        with self.path.open("rb") as file:
            return file.read(n)

    def tail(self, n: int = 4096) -> bytes:
        """Return the last bytes, where a zip lists its members."""
        with self.path.open("rb") as file:
            file.seek(max(self.size - n, 0))
            return file.read(n)


def start_of(head: bytes) -> str:
    """Return a file's first characters, without the white space and the byte order mark before them."""
    return head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")


def first_object_of(text: str) -> dict[str, Any]:
    """Return the first JSON object of a file that begins so, or of the list that it holds; {} where none begins it.

    Where the object goes on after the first 64 KiB, or is nested deeper than is read, the fields that are complete
    until there. Never raises, and takes time in proportion to the text.
    """
    if text.startswith("["):
        text = text[1:].lstrip()
    if not text.startswith("{"):
        return {}
    try:
        head, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        head = _cut(text)
    return head if isinstance(head, dict) else {}


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
