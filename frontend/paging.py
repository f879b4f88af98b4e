"""Pages of a sequence by offset, the offset in the URL."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

MAX_OFFSET = 1_000_000


@dataclass(frozen=True, slots=True)
class Page:
    """`rows` of a longer list; `previous` and `next` are offsets, None at the ends."""

    rows: tuple[Any, ...]
    first: int
    previous: int | None
    next: int | None
    total: int | None = None

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1


def offset_of(request: HttpRequest) -> int:
    """The `offset` of the address; nonsense reads as the beginning."""
    text = request.GET.get("offset", "")
    return min(int(text), MAX_OFFSET) if text.isascii() and text.isdigit() else 0


def number_of(text: str, *, digits: int = 17) -> int | None:
    """An id or a place of the address; nonsense reads as none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def page_of(rows: Sequence[Any], *, offset: int, limit: int) -> Page:
    """A page of a sequence that is all there."""
    shown = tuple(rows[offset : offset + limit])
    return window(shown, offset=offset, limit=limit, has_more=offset + limit < len(rows), total=len(rows))


def window(rows: Sequence[Any], *, offset: int, limit: int, has_more: bool, total: int | None = None) -> Page:
    """A page of rows that were read with one more than `limit` where there is a next page."""
    return Page(
        rows=tuple(rows[:limit]),
        first=offset + 1,
        previous=max(offset - limit, 0) if offset else None,
        next=offset + limit if has_more else None,
        total=total,
    )
