"""Lists in the order that a person chose, and a page of them with the count of all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from runs.store.statements import newest_page

if TYPE_CHECKING:
    from django.db.models import QuerySet

MAX_COUNTED = 10_000  # a longer list says "over 10,000", so that no page counts millions of rows

Row = TypeVar("Row")
Orders = Mapping[str, str]  # the name of an order, and the column or attribute that it sorts by


class RowWindow(NamedTuple):
    """A page of rows. n: the rows of the whole list, at most MAX_COUNTED + 1."""

    rows: tuple[Any, ...]
    n: int


def ordering_names(orders: Orders) -> tuple[str, ...]:
    """Return the values of `ordering`: each name, and with a minus in descending order."""
    return tuple(f"{sign}{name}" for name in orders for sign in ("", "-"))


def sort_rows(rows: Sequence[Row], orders: Orders, ordering: str) -> tuple[Row, ...]:
    """Sort rows in memory by an attribute, or leave them in theirs; rows without a value are last."""
    if not ordering:
        return tuple(rows)
    read = attrgetter(orders[ordering.removeprefix("-")])
    known = sorted((row for row in rows if read(row) is not None), key=read, reverse=ordering.startswith("-"))
    return (*known, *(row for row in rows if read(row) is None))


@dataclass(frozen=True, slots=True)
class RecordList(Generic[Row]):
    """A list of records, newest first. make_rows: returns the rows of records in their order."""

    records: "QuerySet[Any]"
    make_rows: Callable[["QuerySet[Any]"], tuple[Row, ...]]
    orders: Orders

    def sort(self, ordering: str) -> "QuerySet[Any]":
        """Sort the records by a column that is never NULL, then by their ids in the same direction."""
        sign = "-" if ordering.startswith("-") else ""
        return self.records.order_by(f"{sign}{self.orders[ordering.removeprefix('-')]}", f"{sign}id")

    def window(self, *, ordering: str, offset: int, limit: int) -> RowWindow:
        """Return the rows of `limit` records from `offset` on, and the count of all."""
        n = self.records.order_by()[: MAX_COUNTED + 1].count()
        # Ids alone are sorted: whole rows of thousands of records would take five times as long.
        ids = list(self.sort(ordering).values_list("pk", flat=True)[offset : offset + limit])
        return RowWindow(self.make_rows(replace(self, records=self.records.filter(pk__in=ids)).sort(ordering)), n)

    def rows(self, *, after: int | None = None, before: int | None = None, limit: int = 50) -> tuple[Row, ...]:
        """Return rows by id, newest first: older than `after`, or just newer than `before`."""
        return newest_page(self.records, self.make_rows, after=after, before=before, limit=limit)
