"""One moment of the database, for a reader that takes its time."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from runs.statements import take_as_long_as_it_takes


@contextmanager
def snapshot() -> Iterator[None]:
    """All that is read inside is as it was when the first statement ran; nothing can be written.

    It must be the outermost transaction. It holds no lock that a writer waits for, and PostgreSQL ends it where
    nothing is asked for the length of a lease: a client that takes nothing keeps no rows from being cleaned up.
    """
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        take_as_long_as_it_takes()
        yield
