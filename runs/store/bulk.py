"""Read and write many rows or bytes in one statement, where the ORM would be too slow."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec
from django.db import connection
from django.db.models import JSONField, Model
from django.db.models.expressions import DatabaseDefault
from psycopg import Cursor

Row = TypeVar("Row")


class RowTable(Generic[Row]):
    """A table whose columns, except keys, are a dataclass's fields, so that reads and writes agree.

    A field that is a JSON column holds plain values.
    """

    def __init__(self, model: type[Model], row: type[Row]) -> None:
        self._model, self._row = model, row
        self.names = [field.name for field in fields(row)]  # type: ignore[arg-type]
        self._in_json = [isinstance(model._meta.get_field(name), JSONField) for name in self.names]
        self._get = attrgetter(*self.names)

    def values(self, row: Row) -> dict[str, Any]:
        """Return a row by column, as `insert` takes it; JSON is written once for all rows that share it."""
        return {
            name: msgspec.json.encode(value).decode() if is_json else value
            for name, value, is_json in zip(self.names, self._get(row), self._in_json, strict=True)
        }

    def insert(self, rows: Iterable[Mapping[str, Any]], **keys: Any) -> None:
        """Insert rows of `values`, all with the same keys."""
        columns = [*keys, *self.names]
        copy_values(self._model, columns, ([*keys.values(), *row.values()] for row in rows))

    def stream(self, source: str, parameters: Sequence[Any], *, at_once: int, **instead: str) -> Iterator[Row]:
        """Yield the rows of a FROM clause in binary. instead: SQL that replaces some columns."""
        columns = ", ".join(instead.get(name, name) for name in self.names)
        for values in stream_binary(f"SELECT {columns} {source}", parameters, at_once=at_once):
            yield self._row(*values)


def copy_rows(rows: Sequence[Model]) -> None:
    """Insert new records of one model with COPY, like `bulk_create`; their keys are not read back.

    Every constraint of the table holds. What the database has a default for is left to it, unless the first of them
    has a value of its own, as all then do. Raises the errors of django.db.
    """
    if not rows:
        return
    table = rows[0]._meta
    given = [field for field in table.concrete_fields if not field.primary_key]
    fields = [field for field in given if not isinstance(getattr(rows[0], field.attname), DatabaseDefault)]
    names, columns = zip(*(field.get_attname_column() for field in fields), strict=True)
    in_json = [at for at, field in enumerate(fields) if isinstance(field, JSONField)]
    copy_values(type(rows[0]), columns, (_values(row, names, in_json) for row in rows))


def _values(row: Model, names: Sequence[str], in_json: Sequence[int]) -> list[Any]:
    values = [getattr(row, name) for name in names]
    for at in in_json:
        values[at] = None if values[at] is None else json.dumps(values[at])
    return values


def copy_values(model: type[Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows of plain values for the named columns with COPY; JSON columns take JSON text."""
    table, quoted = model._meta.db_table, connection.ops.quote_name
    statement = f"COPY {quoted(table)} ({', '.join(map(quoted, columns))}) FROM STDIN"
    # Django translates the errors of its own statements only, and a database that is away must look the same here.
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def stream_binary(statement: str, parameters: Sequence[Any], *, at_once: int = 1) -> Iterator[tuple[Any, ...]]:
    """Yield a query's rows in binary while it runs; the connection is busy until the end.

    at_once: rows that are taken in one step, more than one where they are small and many. As text, PostgreSQL would
    write each byte of a column of bytes as two digits. Django's own cursors know text only.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, Cursor(connection.connection) as cursor:
        yield from cursor.stream(statement, parameters, binary=True, size=at_once)
