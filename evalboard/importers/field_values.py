"""Read single fields of a parsed log.

A field may be absent or null. A value of another kind is a problem, or is not read."""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar, cast

from evalboard.core.errors import InvalidInput

Read = TypeVar("Read")


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """Return an object, an empty one for null.

    Raises InvalidInput, without the file's name, for anything else.
    """
    if value is None:
        return {}
    if type(value) is not dict and not isinstance(value, Mapping):  # the first is fast, and nearly always so
        raise InvalidInput(f"{what} must be an object")
    return cast(Mapping[str, Any], value)


def rows(value: Any, what: str) -> list[Any]:
    """Return a list, an empty one for null.

    Raises InvalidInput, without the file's name, for anything else.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput(f"{what} must be a list")
    return value


def objects(value: Any, what: str) -> list[Mapping[str, Any]]:
    """Return a list of objects. Raises InvalidInput, without the file's name, for anything else."""
    return [mapping(row, f"{what}[{index}]") for index, row in enumerate(rows(value, what))]


class SideFields:
    """Reads the fields next to an answer; `dropped` has the names of unreadable ones."""

    def __init__(self) -> None:
        self.dropped: list[str] = []

    def read(self, name: str, reader: Callable[..., Read], *given: Any) -> Read | None:
        """Return what a reader makes of a field; None where it raises InvalidInput."""
        try:
            return reader(*given)
        except InvalidInput:
            self.dropped.append(name)
            return None


def drop_odd(document: dict[str, Any], kinds: Mapping[str, type | tuple[type, ...]]) -> list[str]:
    """Remove side fields of another kind from a parsed document; return the note that names them.

    kinds: by dotted names, outer fields before inner ones. Null is of every kind.
    """
    dropped = []
    for name, kind in kinds.items():
        *path, last = name.split(".")
        holder: Any = document
        for part in path:
            holder = holder.get(part) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and holder.get(last) is not None and not isinstance(holder[last], kind):
            del holder[last]
            dropped.append(name)
    return [f"These fields of the log cannot be read and were left out: {', '.join(dropped)}."] if dropped else []


def text(value: Any) -> str:
    """Return a text, or "" for what is none."""
    return value if isinstance(value, str) else ""


def label(value: Any) -> str:
    """Return a text or a number as text, "" for anything else: versions and ids come as either."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value)


def number(value: Any) -> float | None:
    """Return a finite number as a float, None for what is none. True and false are no numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def whole(value: Any) -> int | None:
    """Return a whole number of at most 63 bits, as the database stores; None for anything else."""
    is_whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    return value if is_whole else None


def moment(value: Any) -> datetime | None:
    """Return the UTC time of an ISO text or of Unix seconds; None for anything else.

    A text without a zone is in UTC.
    """
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        seconds = number(value)
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def http_date(value: Any) -> datetime | None:
    """Return the time of a `Date` header in UTC, None for what is none."""
    try:
        at = parsedate_to_datetime(text(value))
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def shortened(words: str, most: int = 1000) -> str:
    """Return a text of at most `most` characters, with an ellipsis where it was cut."""
    return words if len(words) <= most else words[: most - 1] + "…"
