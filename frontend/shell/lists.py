"""Lists: what the address says of them (filters, order, size and place of a page), and their pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from runs.store import MAX_COUNTED, Orders, RecordList, RowWindow, ordering_names, sort_rows

MAX_OFFSET = 1_000_000
SIZES = (25, 50, 100)


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
class ListView:
    """What an address says of a list. settings: the order and size where they are not the list's."""

    orders: Orders
    ordering: str
    size: int
    offset: int
    active: Mapping[str, str]
    settings: Mapping[str, str]
    anchor: str = ""

    def page(self, window: RowWindow) -> "ListPage":
        """Return a page of rows that were read in this view's order."""
        return ListPage(tuple(window.rows), window.n, self)

    def read(self, records: RecordList[Any]) -> "ListPage":
        """Read a page of records in the view's order."""
        return self.page(records.window(ordering=self.ordering, offset=self.offset, limit=self.size))

    def slice(self, rows: Sequence[Any]) -> "ListPage":
        """Return a page of a sequence that is all there, in the view's order."""
        rows = sort_rows(rows, self.orders, self.ordering)
        return self.page(RowWindow(tuple(rows[self.offset : self.offset + self.size]), len(rows)))

    def url(self, **changes: str) -> str:
        """Return the address of the list with other settings."""
        values = {name: value for name, value in {**self.active, **self.settings, **changes}.items() if value}
        return f"?{urlencode(values)}{f'#{self.anchor}' if self.anchor else ''}"


@dataclass(frozen=True, slots=True)
class SortHead:
    """The head of a column. direction: as `aria-sort` has it, "" if the list is sorted by another."""

    url: str
    direction: str


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list. n: the rows of the whole list, which are counted up to MAX_COUNTED."""

    rows: tuple[Any, ...]
    n: int
    view: ListView

    @property
    def first(self) -> int:
        return self.view.offset + 1

    @property
    def last(self) -> int:
        return self.view.offset + len(self.rows)

    @property
    def total(self) -> str:
        return f"over {MAX_COUNTED:,}" if self.n > MAX_COUNTED and self.last <= MAX_COUNTED else f"{self.n:,}"

    @property
    def is_filtered(self) -> bool:
        return bool(self.view.active)

    @property
    def is_continued(self) -> bool:
        return self.view.offset > 0

    @property
    def previous_url(self) -> str:
        before = max(self.view.offset - self.view.size, 0)
        return self.view.url(offset=str(before or "")) if self.is_continued else ""

    @property
    def next_url(self) -> str:
        has_more = self.last < self.n or (self.n > MAX_COUNTED and len(self.rows) == self.view.size)
        return self.view.url(offset=str(self.last)) if has_more and self.rows else ""

    @property
    def sizes(self) -> tuple[tuple[int, str, bool], ...]:
        """Return (rows, address, whether the page has this size), none for a list shorter than the smallest."""
        if self.n <= SIZES[0] and self.view.size in SIZES:
            return ()
        return tuple((size, self.view.url(size=str(size)), size == self.view.size) for size in SIZES)

    def head(self, name: str) -> SortHead:
        """Return the head of a sortable column; a second press turns the order around."""
        ordering = self.view.ordering
        if ordering.removeprefix("-") != name:
            return SortHead(self.view.url(ordering=name), "")
        if ordering.startswith("-"):
            return SortHead(self.view.url(ordering=name), "descending")
        return SortHead(self.view.url(ordering=f"-{name}"), "ascending")


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


def read_view(
    query: Mapping[str, str],
    *,
    size: int,
    orders: Orders | None = None,
    default: str = "",
    active: Mapping[str, str] | None = None,
    anchor: str = "",
) -> ListView:
    """Read the order, size and place of a list out of an address; nonsense reads as the list's own.

    size, default: the list's own size and order. active: the filters that its addresses keep.
    """
    orders = orders or {}
    ordering = query.get("ordering", "")
    ordering = ordering if ordering in ordering_names(orders) else default
    rows = parse_number(query.get("size", ""), digits=3)
    rows = rows if rows in SIZES else size
    settings = {
        "ordering": ordering if ordering != default else "",
        "size": str(rows) if rows != size else "",
    }
    offset = min(parse_number(query.get("offset", "")) or 0, MAX_OFFSET)
    return ListView(orders, ordering, rows, offset, active or {}, {k: v for k, v in settings.items() if v}, anchor)


def parse_number(text: str, *, digits: int = 17) -> int | None:
    """Return an id or a place of the address, None where it is nonsense."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
