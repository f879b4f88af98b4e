"""Many rows, or many bytes, in one statement: for the few places where the ORM takes longer than PostgreSQL."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db import connection
from django.db.models import JSONField, Model
from django.db.models.expressions import DatabaseDefault
from psycopg import Cursor


def copy_rows(rows: Sequence[Model]) -> None:
    """Insert new records of one model with COPY, as `bulk_create` would; their keys are not read back.

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
    """Insert rows of plain values, one for each named column, with COPY; a JSON column takes its JSON as text."""
    table, quoted = model._meta.db_table, connection.ops.quote_name
    statement = f"COPY {quoted(table)} ({', '.join(map(quoted, columns))}) FROM STDIN"
    # Django translates the errors of its own statements only, and a database that is away must look the same here.
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def stream_binary(statement: str, parameters: Sequence[Any], *, at_once: int = 1) -> Iterator[tuple[Any, ...]]:
    """Yield a query's rows as PostgreSQL finds them, over the binary protocol; nothing else may be asked meanwhile.

    at_once: rows that are taken in one step, more than one where they are small and many. As text, PostgreSQL would
    write each byte of a column of bytes as two digits. Django's own cursors know text only.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, Cursor(connection.connection) as cursor:
        yield from cursor.stream(statement, parameters, binary=True, size=at_once)
