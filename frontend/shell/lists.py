"""Lists: what the address filters them by, and their pages, by offset or from a place on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

MAX_OFFSET = 1_000_000


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter with known values. options: (value, label); value: the chosen one or ""."""

    name: str
    label: str
    options: tuple[tuple[str, str], ...]
    value: str = ""


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a list: a value for each name, "" if off.

    `unknown` are the names and values of the address that no filter knows; they filter nothing.
    """

    known: tuple[Filter, ...]
    values: dict[str, str]
    unknown: tuple[tuple[str, str], ...]

    @property
    def active(self) -> dict[str, str]:
        return {name: value for name, value in self.values.items() if value}


@dataclass(frozen=True, slots=True)
class NewestFirst:
    """A page of rows, newest first, with addresses of the newest and the next older page."""

    rows: tuple[Any, ...]
    is_filtered: bool
    is_continued: bool
    newest_url: str
    older_url: str


@dataclass(frozen=True, slots=True)
class OffsetPage:
    """`rows` of a longer list; `previous` and `next` are offsets, None at the ends."""

    rows: tuple[Any, ...]
    first: int
    previous: int | None
    next: int | None
    total: int | None = None

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1


def filter_by(name: str, values: Sequence[str], *, label: str = "") -> Filter:
    """Return a filter whose values are shown as they are."""
    return Filter(name, label or name.capitalize(), tuple((value, value) for value in values))


def read_filters(query: Mapping[str, str], *known: Filter, free: Sequence[str] = ()) -> Filters:
    """Read filters out of an address; those named in `free` take any value."""
    chosen = {name: query.get(name, "").strip() for name in (*(each.name for each in known), *free)}
    values = {each.name: {"", *(value for value, _ in each.options)} for each in known}
    unknown = tuple((name, chosen[name]) for name in values if chosen[name] not in values[name])
    chosen |= {name: "" for name, _ in unknown}
    return Filters(tuple(replace(each, value=chosen[each.name]) for each in known), chosen, unknown)


def newest_first(
    rows: Sequence[Any],
    *,
    limit: int,
    active: Mapping[str, str],
    since: int | None,
    parameter: str = "before",
    key: Callable[[Any], int] = lambda row: int(row.id),
) -> NewestFirst:
    """Return a page of rows that were read with one more than `limit` where there are older ones.

    `since` is the place that the address named, under the name `parameter`; `key` says a row's place.
    """
    shown = tuple(rows[:limit])
    older = f"?{urlencode({**active, parameter: key(shown[-1])})}" if len(rows) > limit else ""
    return NewestFirst(shown, bool(active), since is not None, f"?{urlencode(active)}", older)


def parse_offset(request: HttpRequest) -> int:
    """Return the `offset` of the address; nonsense reads as the beginning."""
    text = request.GET.get("offset", "")
    return min(int(text), MAX_OFFSET) if text.isascii() and text.isdigit() else 0


def parse_number(text: str, *, digits: int = 17) -> int | None:
    """Return an id or a place of the address, None where it is nonsense."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def slice_page(rows: Sequence[Any], *, offset: int, limit: int) -> OffsetPage:
    """Return a page of a sequence that is all there."""
    shown = tuple(rows[offset : offset + limit])
    return window_page(shown, offset=offset, limit=limit, has_more=offset + limit < len(rows), total=len(rows))


def window_page(
    rows: Sequence[Any], *, offset: int, limit: int, has_more: bool, total: int | None = None
) -> OffsetPage:
    """Return a page of rows that were read with one more than `limit` where there is a next page."""
    return OffsetPage(
        rows=tuple(rows[:limit]),
        first=offset + 1,
        previous=max(offset - limit, 0) if offset else None,
        next=offset + limit if has_more else None,
        total=total,
    )
