"""A worker of a team has its own database role: it does a whole run, and reads no token and writes no verdict."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from runs.management.commands import grant_roles
from runs.models import RunRecord
from tests.faults.conftest import new_run, processes, scripted_python, start_worker, wait_until
from tests.faults.whole import assert_whole
from tests.worker.conftest import Start, Wait, ended

__all__ = ["new_run", "processes", "scripted_python", "start_worker", "wait_until"]
pytestmark = pytest.mark.django_db(transaction=True)
WEB, WORKER = "evalboard_test_web", "evalboard_test_worker"
PASSWORD = "of-a-test"


@pytest.fixture
def setup(session_redis: Any, settings: Any) -> dict[str, str]:
    """The settings of a team's worker."""
    session_redis.command("FLUSHALL")
    settings.REDIS_URL = session_redis.url
    return {"REDIS_URL": session_redis.url, "EVALBOARD_LOOK_SECONDS": "5"}


@pytest.fixture
def roles(transactional_db: None) -> Iterator[None]:
    with connection.cursor() as cursor:
        for role in (WEB, WORKER):
            cursor.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    call_command("grant_roles", web=WEB, worker=WORKER)
    yield
    with connection.cursor() as cursor:
        for role in (WEB, WORKER):
            cursor.execute(f"DROP OWNED BY {role}")
            cursor.execute(f"DROP ROLE {role}")


def url_as(database_url: str, role: str) -> str:
    """Return the address of the same database for a role."""
    head, _, rest = database_url.partition("://")
    return f"{head}://{role}:{PASSWORD}@{rest.partition('@')[2]}"


@pytest.fixture
def refused(roles: None, database_url: str) -> Iterator[Callable[[str], bool]]:
    """Tell whether PostgreSQL refuses a worker's statement."""
    with psycopg.connect(url_as(database_url, WORKER), autocommit=True) as worker:

        def is_refused(statement: str) -> bool:
            try:
                worker.execute(statement)
            except psycopg.errors.InsufficientPrivilege:
                return True
            return False

        yield is_refused


def test_every_table_is_decided_on() -> None:
    """A new table is closed to workers until it is on a list."""
    names = [*grant_roles.WORKER_WRITES, *grant_roles.WORKER_READS, *grant_roles.WEB_ONLY, *grant_roles.AUDIT]
    names += {table for _, table in grant_roles.WORKER_COLUMNS}
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)} | {"django_migrations"}
    assert sorted(names) == sorted(tables)


@pytest.mark.usefixtures("roles")
def test_a_worker_does_a_whole_run_and_its_release_waits_for_the_scheduler(
    new_run: Callable[..., RunRecord],
    start_worker: Start,
    wait_until: Wait,
    database_url: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run = new_run(["say blue"] * 30, repeats=2)
    worker = url_as(database_url, WORKER)
    start_worker(DATABASE_URL=worker, EVALBOARD_RECONCILE_SECONDS="0.5")
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)
    later = new_run(["say blue"] * 30, repeats=1)
    wait_until(lambda: ended(later), "another run ends, after sweeps")
    logged = "".join(capfd.readouterr())
    assert "permission denied" not in logged
    assert "Traceback" not in logged


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT secret_digest FROM runs_token",
        "SELECT password FROM auth_user",
        "SELECT username FROM auth_user",
        "SELECT session_data FROM django_session",
        "SELECT secret FROM runs_webhook",
        "SELECT * FROM runs_webhook",
        "UPDATE runs_verdict SET word = 'ship'",
        "INSERT INTO runs_verdict (word) VALUES ('ship')",
        "DELETE FROM runs_verdict",
        "UPDATE runs_release SET verdict_id = NULL",
        "UPDATE runs_policy SET settings = '{}'",
        "INSERT INTO runs_signoff (decision) VALUES ('approve')",
        "TRUNCATE runs_verdict CASCADE",
        "ALTER TABLE runs_signoff DISABLE TRIGGER ALL",
        "UPDATE auth_user SET is_superuser = true",
        "INSERT INTO runs_token (name) VALUES ('mine')",
        "UPDATE runs_suiteversion SET digest = ''",
        "CREATE TABLE mine (a int)",
        "SET ROLE postgres",
    ],
)
def test_what_is_not_a_workers_business_is_refused(refused: Callable[[str], bool], statement: str) -> None:
    assert refused(statement)


def test_what_is_a_workers_business_is_not(refused: Callable[[str], bool]) -> None:
    for statement in ("SELECT word FROM runs_verdict", "SELECT id, url FROM runs_webhook", "DELETE FROM runs_stray"):
        assert not refused(statement)


@pytest.mark.usefixtures("roles")
def test_the_web_server_has_no_right_to_change_tables(database_url: str) -> None:
    with psycopg.connect(url_as(database_url, WEB), autocommit=True) as web:
        web.execute("SELECT secret_digest FROM runs_token")
        web.execute("UPDATE runs_verdict SET word = word")
        for statement in (
            "ALTER TABLE runs_signoff DISABLE TRIGGER ALL",
            "TRUNCATE runs_signoff",
            "DROP TABLE runs_run",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                web.execute(statement)


@pytest.mark.usefixtures("transactional_db")
def test_a_role_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match="There is no role nobody_here"):
        call_command("grant_roles", web="nobody_here", worker="postgres")
