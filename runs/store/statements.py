"""Statements to PostgreSQL: allowed values, time limits, lists in a chosen order and their pages."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from django.conf import settings
from django.db import connection, connections
from django.db.models import Aggregate, FloatField, QuerySet

from evalboard.core.document import storable
from evalboard.core.errors import NotFound

if TYPE_CHECKING:
    from django.db.models import QuerySet


__all__ = [
    "limit_statements",
    "limit_statements_here",
    "may_decide",
    "newest_page",
    "require_row",
    "storable",
    "take_as_long_as_it_takes",
]

Row = TypeVar("Row")


class Percentile(Aggregate):
    """The value below which a share of the rows is, interpolated between neighbours."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


def limit_statements() -> None:
    """Let PostgreSQL stop each statement of this process after EVALBOARD_STATEMENT_SECONDS.

    For the web server, where one costly page must not take a connection and a core from everybody else. Workers,
    the scheduler and management commands take as long as their work does.
    """
    options = connections.settings["default"]["OPTIONS"]
    options["options"] += f" -c statement_timeout={round(settings.STATEMENT_SECONDS * 1000)}"


@functools.cache
def may_decide() -> bool:
    """Tell whether this process's database role may write verdicts, and so act for people.

    No worker's of a team may. A role's rights are read once; a process that was given others starts again.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_table_privilege('runs_verdict', 'INSERT')")
        return bool(cursor.fetchone()[0])


def limit_statements_here(seconds: float) -> None:
    """Let PostgreSQL stop each statement after `seconds`, until the transaction ends; 0: none."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {round(seconds * 1000)}")


def take_as_long_as_it_takes() -> None:
    """Lift the time limit until the transaction ends, for rare work that grows with a run."""
    limit_statements_here(0)


def newest_page(
    records: "QuerySet[Any]",
    make_rows: Callable[["QuerySet[Any]"], tuple[Row, ...]],
    *,
    after: int | None,
    before: int | None,
    limit: int,
) -> tuple[Row, ...]:
    """Return rows of up to `limit` records, newest first: older than `after`, or just newer than `before`.

    after, before: ids; at most one is given.
    """
    if before is not None:
        return make_rows(records.filter(pk__gt=before).order_by("id")[:limit])[::-1]
    older = records if after is None else records.filter(pk__lt=after)
    return make_rows(older.order_by("-id")[:limit])


def require_row(rows: "QuerySet[Any, Row]", missing: str) -> Row:
    """Return the first row. Raises NotFound with the sentence `missing` where there is none."""
    row = rows.first()
    if row is None:
        raise NotFound(missing)
    return row


def require_first(rows: Sequence[Row], missing: str) -> Row:
    """Return the first of rows that were read. Raises NotFound with the sentence `missing` without any."""
    if not rows:
        raise NotFound(missing)
    return rows[0]


MAX_COUNTED = 10_000  # a longer list says "over 10,000", so that no page counts millions of rows

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
