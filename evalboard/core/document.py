"""Reading what people send: strict JSON, and every problem named with its path."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from evalboard.core.errors import InvalidInput

MAX_PROBLEMS = 20  # one answer names this many; the rest would only bury them
MAX_DEPTH = 64  # of nested lists and objects; deeper is no document a person wrote
MAX_PATH_CHARS = 300  # of a path or a problem as shown: keys of a document may be of any length
MAX_INTEGER = 10**300  # beyond it neither float64 nor other JSON readers follow
_UNSTORABLE = re.compile(r"[\0\ud800-\udfff]")


class Problems:
    """The problems of a document by the path of the field. Stores the first MAX_PROBLEMS and counts all."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.n_found = 0

    def add(self, path: str, text: str) -> None:
        self.n_found += 1
        if len(self.fields) < MAX_PROBLEMS:
            self.fields.setdefault(_printable(path), _printable(text))

    @property
    def is_full(self) -> bool:
        return len(self.fields) >= MAX_PROBLEMS

    def raise_if_any(self, what: str) -> None:
        """Raise InvalidInput if there are problems: the first in its detail, all stored ones in `fields`."""
        if not self.fields:
            return
        path, text = next(iter(self.fields.items()))
        n_more = len(self.fields) - 1
        more = f" ({n_more} more)" if n_more else ""
        place = f"{path}: " if path else ""
        raise InvalidInput(f"{what}: {place}{text}{more}", fields=dict(self.fields))


# What the parser says, in words for people who wrote the text.
JSON_PROBLEMS = {
    "Expecting value": "a value is missing",
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Expecting property name enclosed in double quotes": "a name in double quotes is missing",
    "Extra data": "more text follows the end",
    "Unterminated string starting at": "a text has no closing quote",
    "Invalid control character at": "a control character is not escaped",
}


def read_strict_json(text: str) -> Any:
    """Parse JSON. Raises ValueError if it is not strict JSON, or not storable.

    Refused besides bad syntax: NaN and infinities, numbers beyond float64, a key given twice.
    """
    try:
        return json.loads(
            text, parse_constant=refuse_constant, parse_float=finite_float, object_pairs_hook=_unique_keys
        )
    except json.JSONDecodeError as problem:
        what = JSON_PROBLEMS.get(problem.msg, "it cannot be read")
        raise ValueError(f"{what} (line {problem.lineno}, column {problem.colno})") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def storable(text: str) -> str:
    """Replace each NUL and lone surrogate in a text, which PostgreSQL cannot store."""
    return _UNSTORABLE.sub("\ufffd", text)


def storage_problems(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield (path, problem) for each part of a value that strict JSON or PostgreSQL cannot store."""
    pending: list[tuple[Any, str, int]] = [(value, path, 0)]
    while pending:
        item, place, depth = pending.pop()
        if isinstance(item, str):
            if problem := text_problem(item):
                yield place, problem
        elif isinstance(item, dict | list | tuple):
            if depth >= MAX_DEPTH:
                yield place, f"is nested more than {MAX_DEPTH} levels deep"
                continue
            pending.extend(_children(item, place, depth + 1))
            if isinstance(item, dict):
                yield from _key_problems(item, place)
        elif problem := _scalar_problem(item):
            yield place, problem


def is_too_deep(value: Any) -> bool:
    """Tell whether a JSON value is nested deeper than MAX_DEPTH, without recursion."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


def text_problem(text: str) -> str | None:
    """Return why PostgreSQL cannot store this text, or None."""
    if "\0" in text:
        return "holds a NUL character (U+0000), which the database cannot store"
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"holds a lone surrogate (U+{ord(text[error.start]):04X}), which is not a Unicode character"
    return None


def at(path: str, key: str) -> str:
    """Return the path of a field inside `path`."""
    return f"{path}.{key}" if path else key


def _printable(text: str) -> str:
    """Return `text` short, and with what cannot be stored or logged written as an escape."""
    cut = text if len(text) <= MAX_PATH_CHARS else text[:MAX_PATH_CHARS] + "…"
    return cut.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def _children(item: Any, place: str, depth: int) -> Iterator[tuple[Any, str, int]]:
    # Reversed, because the caller pops from the end: problems come out in reading order.
    if isinstance(item, dict):
        return ((child, at(place, str(key)), depth) for key, child in reversed(item.items()))
    return ((item[index], f"{place}[{index}]", depth) for index in range(len(item) - 1, -1, -1))


def _key_problems(item: dict[Any, Any], place: str) -> Iterator[tuple[str, str]]:
    for key in item:
        if not isinstance(key, str):
            yield place, f"has the key {key!r}, which is not text"
        elif problem := text_problem(key):
            yield place, f"has a key that {problem}"


def _scalar_problem(item: Any) -> str | None:
    if item is None or isinstance(item, bool):
        return None
    if isinstance(item, float):
        return None if math.isfinite(item) else "is not a finite number"
    if isinstance(item, int):
        return None if abs(item) <= MAX_INTEGER else "is an integer of more than 300 digits"
    return f"is a {type(item).__name__}, which JSON cannot hold"


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for a word that JSON does not have: NaN, Infinity."""
    raise ValueError(f"{name} is not a JSON number")


def finite_float(text: str) -> float:
    """Return the number of a JSON text. Raises ValueError for one beyond a double's range."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"the key {json.dumps(key[:60])} is given twice in one object")
        members[key] = value
    return members
