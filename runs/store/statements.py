"""Statements to PostgreSQL: allowed values, time limits, and a page of a list."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection, connections
from django.db.models import QuerySet

from evalboard.core.document import storable
from evalboard.core.errors import NotFound

__all__ = ["limit_statements", "newest_page", "require_row", "storable", "take_as_long_as_it_takes"]

Row = TypeVar("Row")


def limit_statements() -> None:
    """Let PostgreSQL stop each statement of this process after EVALBOARD_STATEMENT_SECONDS.

    For the web server, where one costly page must not take a connection and a core from everybody else. Workers,
    the scheduler and management commands take as long as their work does.
    """
    options = connections.settings["default"]["OPTIONS"]
    options["options"] += f" -c statement_timeout={round(settings.STATEMENT_SECONDS * 1000)}"


def take_as_long_as_it_takes() -> None:
    """Lift the time limit until the transaction ends, for rare work that grows with a run."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")


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
