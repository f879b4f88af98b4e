"""The database of the newest release is restored and migrated. It is whole, and processes of that release still write.

`python -m tests.released` records it before the tag. Where a write is refused, an old process cannot fill a new column:
give it a `db_default`.
"""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client

from tests import released
from tests.conftest import read_database_url

NAME = "evalboard_released"
# Django's list of migrations, and the audit trail, whose lines PostgreSQL writes.
NOT_WRITTEN = {"django_migrations", "runs_auditline"}


@pytest.fixture(scope="module")
def columns(django_db_setup: None, django_db_blocker: Any) -> Iterator[dict[str, list[str]]]:
    """Turn to the restored and migrated database. Return the columns that the release knew."""
    with django_db_blocker.unblock():
        before = connection.settings_dict["NAME"]
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {NAME}")
        connection.close()
        try:
            connection.settings_dict["NAME"] = NAME
            released.restore(read_database_url())
            known = released.stored_columns()
            call_command("migrate", verbosity=0, skip_checks=True)
            yield known
        finally:
            connection.close()
            connection.settings_dict["NAME"] = before
            with connection.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


def refused_writes(columns: dict[str, list[str]]) -> Iterator[str]:
    """Write a row of each table with the columns of the release alone. Yield what PostgreSQL refuses.

    The row is one that is there, taken away and put back, so that it keeps every rule but those that came later.
    """
    for table, names in columns.items():
        if table in NOT_WRITTEN:
            continue
        listed = ", ".join(f'"{name}"' for name in names)
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL session_replication_role = replica")
                kept = f"SELECT {listed} FROM {table} LIMIT 1"  # noqa: S608
                cursor.execute(f"CREATE TEMPORARY TABLE taken ON COMMIT DROP AS {kept}")
                cursor.execute(f"DELETE FROM {table} WHERE ctid = (SELECT ctid FROM {table} LIMIT 1)")  # noqa: S608
                cursor.execute("SET LOCAL session_replication_role = origin")
                cursor.execute(f"INSERT INTO {table} ({listed}) SELECT * FROM taken")  # noqa: S608
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
                transaction.set_rollback(True)
        except DatabaseError as refused:
            yield f"{table}: {refused}"


def test_migrations_of_the_release_stay_as_they_are() -> None:
    """A database that ran one does not run it again. Before the tag: record again; after it: add a migration."""
    recorded = json.loads(released.ABOUT.read_text())["migrations"]
    assert recorded.items() <= released.digest_migrations().items()


def test_processes_of_the_release_write_next_to_new_ones(columns: dict[str, list[str]]) -> None:
    assert list(refused_writes(columns)) == []


def test_a_column_that_they_cannot_fill_is_named(columns: dict[str, list[str]]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE runs_comment ADD planted integer NOT NULL DEFAULT 0")
        assert list(refused_writes(columns)) == []
        cursor.execute("ALTER TABLE runs_comment ALTER planted DROP DEFAULT")  # as Django does without db_default
        cursor.execute("ALTER TABLE runs_webhook RENAME url TO address")
        refused = [line.partition("\n")[0] for line in refused_writes(columns)]
        transaction.set_rollback(True)
    assert refused == [
        'runs_comment: null value in column "planted" of relation "runs_comment" violates not-null constraint',
        'runs_webhook: column "url" does not exist',
    ]


def test_what_the_release_stored_and_signed_is_whole(columns: dict[str, list[str]], settings: Any) -> None:
    settings.VERDICT_KEYS = (released.KEY,)
    out = io.StringIO()
    call_command("verify_stored", stdout=out, stderr=out)
    assert "as they were stored" in out.getvalue()


@pytest.mark.nightly
def test_every_address_that_the_release_answered_is_answered(columns: dict[str, list[str]], settings: Any) -> None:
    settings.VERDICT_KEYS = (released.KEY,)
    client = Client(raise_request_exception=False)
    with transaction.atomic():
        client.force_login(get_user_model().objects.get(username="admin"))
        answers = {each: client.get(each).status_code for each in json.loads(released.ABOUT.read_text())["addresses"]}
        transaction.set_rollback(True)
    assert {each: status for each, status in answers.items() if status != 200} == {}
