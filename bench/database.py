"""A database of the bench's own, gone when it ends."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql


@contextmanager
def temporary_database() -> Iterator[None]:
    """Set DATABASE_URL to a new, empty database: on the given server, else on one out of the wheel."""
    folder = Path(tempfile.mkdtemp(prefix="evalboard-bench-"))
    os.environ["EVALBOARD_DATA_DIR"] = str(folder)
    name = f"evalboard_bench_{secrets.token_hex(4)}"
    given = os.environ.get("DATABASE_URL")
    server = None
    try:
        if given:
            base = given.rpartition("/")[0]
            with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            os.environ["DATABASE_URL"] = f"{base}/{name}"
        else:
            from evalboard.local.postgres import Server

            server = Server(folder / "postgres", log=folder / "postgres.log")
            server.start()
            os.environ["DATABASE_URL"] = server.create_database(name)
        yield
    finally:
        _close_connections()
        if server is not None:
            server.stop()
        elif given:
            with psycopg.connect(f"{given.rpartition('/')[0]}/postgres", autocommit=True) as connection:
                connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        shutil.rmtree(folder, ignore_errors=True)


def _close_connections() -> None:
    from django.db import connections

    connections.close_all()
