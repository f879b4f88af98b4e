"""The database accounts of a team cannot change the audit trail, and its owner cannot unseen."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection

from runs.audit import check_trail, seal_trail
from runs.models import AuditLineRecord
from tests import build
from tests.attacks.test_database_roles import WEB, WORKER, roles, url_as

__all__ = ["roles"]
pytestmark = pytest.mark.django_db(transaction=True)
LINE = "INSERT INTO runs_auditline (actor, act, person, credential, address, via, kind, subject, name, request_id, role, previous, digest{0}) VALUES ('person', 'created', 'ada', '', '', '', 'run', '1', '', '', '', '', ''{1})"  # noqa: E501

TRIGGER = "CREATE TEMP TABLE mine (id int);CREATE TRIGGER writes AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION {}"


@pytest.fixture
def as_web(roles: None, database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url_as(database_url, WEB), autocommit=True) as web:
        yield web


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        (WEB, "UPDATE runs_auditline SET person = 'eve'"),
        (WEB, "DELETE FROM runs_auditline"),
        (WEB, "TRUNCATE runs_auditline"),
        (WEB, "DELETE FROM runs_auditseal"),
        (WEB, "ALTER TABLE runs_auditline DISABLE TRIGGER ALL"),
        (WEB, "DROP TRIGGER runs_audit ON runs_token"),
        (WEB, "SET session_replication_role = replica"),
        (WORKER, "SELECT * FROM runs_auditline"),
        (WORKER, "DELETE FROM runs_auditline"),
        (WORKER, LINE.format("", "")),
        (WORKER, "SELECT runs_audit_cut(90)"),
        (WORKER, TRIGGER.format("runs_audit('person', '', '{}', '{}', '{}')")),
        (WEB, TRIGGER.format("runs_audit_chain()")),
        (WEB, LINE.format("", "")),
        (WEB, LINE.format("", "").replace("created", "cut")),
    ],
)
@pytest.mark.usefixtures("roles")
def test_the_accounts_of_the_team_may_not(role: str, statement: str, database_url: str) -> None:
    build.user("ada", "admin")
    refused = pytest.raises(psycopg.errors.InsufficientPrivilege)
    with psycopg.connect(url_as(database_url, role), autocommit=True) as account, refused:
        account.execute(statement)  # type: ignore[arg-type]
    assert check_trail().is_whole


def test_what_the_web_server_writes_is_numbered_and_names_its_account(
    as_web: psycopg.Connection,
) -> None:
    """A line that is written past the triggers of tables has the account, and chooses no place and time."""
    build.user("ada", "admin")
    as_web.execute("UPDATE auth_user SET is_staff = true")
    event = LINE.replace("created", "refused").format(", number, id, at", ", 1000, 1000000, '2020-01-01'")
    as_web.execute(event)  # type: ignore[arg-type]
    changed, added = AuditLineRecord.objects.order_by("-number")[:2][::-1]
    assert (changed.kind, changed.actor, changed.role) == ("person", "database", WEB)
    assert (added.number, added.role) == (changed.number + 1, WEB)
    assert (added.pk, added.at.year > 2020) == (changed.pk + 1, True)
    assert check_trail().is_whole


@pytest.mark.usefixtures("roles")
def test_a_worker_writes_in_nobodys_name(database_url: str) -> None:
    """What it may write leaves a line where it names an actor; the line does not repeat that name."""
    run = build.run()
    with psycopg.connect(url_as(database_url, WORKER)) as worker:
        worker.execute("""SELECT set_config('evalboard.actor', '{"actor": "person", "person": "ada"}', true)""")
        worker.execute('UPDATE runs_run SET labels = \'{"branch": "main"}\' WHERE id = %s', [run.pk])
    line = AuditLineRecord.objects.order_by("-number")[0]
    assert (line.kind, line.actor, line.person, line.role) == ("run", "database", "", WORKER)


def test_what_the_owner_changed_is_found(settings: Any) -> None:
    settings.VERDICT_KEYS = ("a key that the database does not have",)
    build.user("ada", "admin")
    seal_trail()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE runs_auditline DISABLE TRIGGER USER")
        cursor.execute("UPDATE runs_auditline SET person = 'eve'")
        cursor.execute("UPDATE runs_auditline l SET digest = runs_audit_digest(l) WHERE number = 1")
        cursor.execute(
            "UPDATE runs_auditline SET previous = (SELECT digest FROM runs_auditline WHERE number = 1) WHERE number = 2"
        )
        cursor.execute("UPDATE runs_auditline l SET digest = runs_audit_digest(l) WHERE number = 2")
        cursor.execute("ALTER TABLE runs_auditline ENABLE TRIGGER USER")
    assert check_trail().problem == "The seal of line 2 is wrong: a line since the beginning was changed."
