"""The audit trail: every table is decided on, what people write leaves a line, and no line can be changed unseen."""

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.cache import caches
from django.core.management import CommandError, call_command, get_commands
from django.db import connection, transaction
from django.db.utils import IntegrityError
from django.test import Client
from django.utils import timezone

from evalboard.contract.audit import KINDS_AUDITED
from evalboard.core.audit import follow_chain
from runs.access import change_role, create_token
from runs.audit import AuditFilter, audit_lines, check_trail, cut_trail, export_lines, seal_trail
from runs.audit.context import MAX_OF_ADDRESS, ActorNaming, operator_recorder
from runs.migrations import _audit
from runs.models import (
    AuditLineRecord,
    AuditSeal,
    EndpointRecord,
    ProbeRecord,
    ProfileRecord,
    ReplayRecord,
    RunRecord,
    Token,
    TrialRecord,
)
from runs.retention import create_rule
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]

DERIVED = "computed from what is stored; no act of a person"
WORKERS = "written by workers and engines alone"
PART = "written with the row that it belongs to, which has a line, and not changed"
NOT_AUDITED = {
    "auth_group": "the four roles, made at their first use",
    "auth_group_permissions": "unused: roles are scopes",
    "auth_permission": "made by migrations",
    "django_content_type": "made by migrations",
    "axes_accessattempt": "counters of wrong passwords; each has a security event",
    "axes_accessattemptexpiration": "unused",
    "axes_accessfailurelog": "unused",
    "axes_accesslog": "unused",
    "runs_auditline": "the trail itself",
    "runs_auditseal": "the trail itself",
    "runs_idempotencykey": "says that a request was answered before; what it made has a line",
    "runs_lane": "whose turn it is in the queue",
    "runs_scheduledstart": "started by the scheduler; the schedule has lines",
    "runs_event": "the history of a run, which is a record itself",
    "runs_case": PART + "; covered by the digest of the suite version; deleting its texts has a deletion",
    "runs_image": PART + "; named by its digest",
    "runs_uploadpart": PART,
    "runs_uploadedcase": DERIVED,
    "runs_gate": PART,
    "runs_experimentarm": PART,
    "runs_answerset": PART,
    **dict.fromkeys(
        (
            *("runs_verdict", "runs_rotation", "runs_rotation_reference_runs", "runs_comparison", "runs_divergence"),
            *("runs_listedframe", "runs_runfigures", "runs_caseframe", "runs_casecolumns", "runs_suitenoise"),
            "runs_stray",
        ),
        DERIVED,
    ),
    **dict.fromkeys(
        (
            *(
                "runs_backendname",
                "runs_bucket",
                "runs_callslot",
                "runs_engineprocess",
                "runs_fingerprint",
                "runs_model",
            ),
            *("runs_forcedanswer", "runs_probe_buckets", "runs_repeat_engine_processes", "runs_response"),
            *("runs_selftest", "runs_shard", "runs_traceblock", "runs_vocabulary", "runs_worker"),
        ),
        WORKERS,
    ),
}


@pytest.fixture
def as_ada() -> Iterator[None]:
    """Have what the test writes be an act of a person."""
    with connection.execute_wrapper(ActorNaming(lambda: {"actor": "person", "person": "ada", "address": "192.0.2.7"})):
        yield


@pytest.fixture
def sealed(settings: Any) -> None:
    settings.VERDICT_KEYS = ("a key that the database does not have",)


def lines(**wanted: Any) -> list[AuditLineRecord]:
    return list(AuditLineRecord.objects.filter(**wanted).order_by("number"))


def as_owner(statement: str, *parameters: Any) -> None:
    """Write past every trigger, as the owner of the database can."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(statement, parameters or None)


def compute_anew(*numbers: int) -> None:
    """Give lines the digests that they had to have, had they been written so."""
    for number in numbers:
        previous = AuditLineRecord.objects.filter(number=number - 1).values_list("digest", flat=True).first()
        as_owner("UPDATE runs_auditline SET previous = %s WHERE number = %s", previous or "", number)
        as_owner("UPDATE runs_auditline l SET digest = runs_audit_digest(l) WHERE number = %s", number)


def test_every_table_is_audited_or_named_with_a_reason() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'runs_audit'")
        audited = {table for (table,) in cursor.fetchall()}
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    assert audited == _audit.AUDITED.keys()
    assert audited | NOT_AUDITED.keys() == tables
    assert audited & NOT_AUDITED.keys() == set()
    assert {each.kind for each in _audit.AUDITED.values()} | {"audit trail"} == set(KINDS_AUDITED)


def test_a_line_says_who_what_and_from_where_and_hides_secrets() -> None:
    client = Client()
    client.force_login(build.user("ada", "admin"))
    client.post("/settings/tokens/", {"name": "ci", "scopes": ["read"], "days": "30"}, REMOTE_ADDR="192.0.2.7")
    [line] = lines(kind="token")
    assert (line.actor, line.person, line.address, line.via) == ("person", "ada", "192.0.2.7", "POST tokens")
    assert (line.act, line.subject, line.name) == ("created", str(Token.objects.get().pk), "ci")
    assert line.credential.startswith("session ")
    assert line.changes["scopes"] == [None, '["read"]']
    assert line.changes["secret_digest"] == [None, "hidden"]
    [person] = lines(kind="person", act="created")
    assert person.changes["password"] == [None, "hidden"]


@pytest.mark.usefixtures("as_ada")
def test_a_change_has_the_values_before_and_after() -> None:
    grace = build.user("grace", "viewer")
    change_role(name="grace", role="engineer")
    *_, removed, added = lines(kind="person", subject=str(grace.pk))
    assert (removed.changes, added.changes) == ({"role": ["viewer", None]}, {"role": [None, "engineer"]})
    build.endpoint("local")
    endpoint = EndpointRecord.objects.get(slug="local")
    endpoint.concurrency = 3
    endpoint.save()
    assert lines(kind="endpoint", act="changed")[0].changes == {"concurrency": ["8", "3"]}
    endpoint.save()
    assert len(lines(kind="endpoint", act="changed")) == 1  # nothing was changed


@pytest.mark.usefixtures("as_ada")
def test_no_line_keeps_what_a_model_answered() -> None:
    """Short texts too: a line outlives the deletion of what it is about."""
    build.endpoint("local")
    build.profile()
    served = {"endpoint": EndpointRecord.objects.get(), "profile": ProfileRecord.objects.get()}
    text = [{"text": "Ada lives in Oslo."}]
    trial = TrialRecord.objects.create(**served, case={"messages": text}, answer=text)
    replay = ReplayRecord.objects.create(**served, variants=[{}], body={"messages": text}, results=text)
    probe = ProbeRecord.objects.create(**served, kind="batch", parameters={}, answers=text, finding=text)
    for row in (trial, replay, probe):
        row.delete()
    assert len(lines(act="deleted")) == 3
    assert not [line for line in lines() if "Oslo" in json.dumps(line.changes)]


@pytest.mark.usefixtures("as_ada")
def test_what_is_rolled_back_leaves_no_line() -> None:
    with transaction.atomic():
        build.endpoint("local")
        assert lines(kind="endpoint") != []
        transaction.set_rollback(True)
    assert lines(kind="endpoint") == []


def test_workers_leave_no_lines_and_psql_does_where_no_worker_writes() -> None:
    build.finished_run(["blue"])
    assert {line.kind for line in lines()} <= {"person", "policy"}
    build.user("eve", "viewer")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE auth_user SET is_superuser = true")
    line = lines()[-1]
    assert (line.actor, line.changes) == ("database", {"is_superuser": ["false", "true"]})
    assert line.role == connection.settings_dict["USER"]


@pytest.mark.parametrize(
    "statement", ["UPDATE runs_auditline SET person = 'eve'", "DELETE FROM runs_auditline", "TRUNCATE runs_auditline"]
)
def test_no_line_can_be_changed(statement: str) -> None:
    build.user("ada", "admin")
    with pytest.raises(IntegrityError, match="append-only"), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize(
    ("tampering", "problem"),
    [
        ("UPDATE runs_auditline SET person = 'eve' WHERE number = 3", "Line 3 was changed: its digest is wrong."),
        ("DELETE FROM runs_auditline WHERE number = 3", "Line 3 is missing."),
        ("DELETE FROM runs_auditline WHERE number <= 3", "Line 4 is the oldest, and no line says"),
        (
            "UPDATE runs_auditline SET person = 'eve' WHERE number = 3;"
            "UPDATE runs_auditline l SET digest = runs_audit_digest(l) WHERE number = 3",
            "Line 4 does not follow from line 3.",
        ),
    ],
)
def test_a_line_that_was_changed_past_the_triggers_is_named(tampering: str, problem: str) -> None:
    for name in ("ada", "bob", "eve"):
        build.user(name, "viewer")
    assert check_trail().is_whole
    as_owner(tampering)
    checked = check_trail()
    assert not checked.is_whole
    assert checked.problem.startswith(problem)
    exported = follow_chain(json.loads(line) for line in export_lines(AuditFilter()))
    assert (exported.broken, exported.problem) == (checked.broken, checked.problem)
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("verify_stored", stdout=out, stderr=out)
    assert f"The audit trail: {problem}" in out.getvalue()


@pytest.mark.usefixtures("sealed")
def test_a_chain_that_was_computed_anew_has_the_wrong_seal() -> None:
    build.user("ada", "viewer")
    assert seal_trail()
    assert not seal_trail()
    build.user("bob", "viewer")
    assert check_trail().sealed_to == 2
    as_owner("UPDATE runs_auditline SET person = 'eve' WHERE number = 2")
    compute_anew(2, 3, 4)
    checked = check_trail()
    assert (checked.broken, checked.is_whole) == (2, False)
    assert checked.problem == "The seal of line 2 is wrong: a line since the beginning was changed."


@pytest.mark.usefixtures("sealed")
def test_seals_that_were_removed_are_missed() -> None:
    build.user("ada", "viewer")
    seal_trail()
    as_owner("UPDATE runs_auditline SET at = now() - interval '1 hour' WHERE number = 1")
    compute_anew(1, 2)
    AuditSeal.objects.all().delete()
    assert check_trail().problem.startswith("Line 1 has no seal.")
    assert check_trail(is_restored=True).problem.startswith("Line 1 has no seal.")
    as_owner("UPDATE runs_auditline SET at = now() - interval '1 hour'")
    compute_anew(1, 2)
    assert check_trail().problem.startswith("Line 1 has no seal.")
    assert check_trail(is_restored=True).is_whole, "the dump was taken before the scheduler sealed it"


def test_only_lines_that_are_old_enough_go_and_a_line_says_so(settings: Any) -> None:
    for name in ("ada", "bob", "eve"):
        build.user(name, "viewer")
    settings.AUDIT_DAYS = 90
    assert not cut_trail()
    as_owner("UPDATE runs_auditline SET at = now() - interval '91 days' WHERE number <= 4")
    compute_anew(*range(1, 7))
    assert check_trail().is_whole
    assert cut_trail()
    checked = check_trail()
    assert (checked.first, checked.last, checked.problem) == (5, 7, "")
    assert [(line.act, line.subject) for line in lines(kind="audit trail")] == [("cut", "4")]
    with pytest.raises(IntegrityError, match="at least 90 days"), connection.cursor() as cursor:
        cursor.execute("SELECT runs_audit_cut(30)")


def test_people_who_write_at_once_get_numbers_without_gaps() -> None:
    """Each waits for a row that the other has, before either has a number: no deadlock."""
    people = [build.user(name, "viewer") for name in ("ada", "bob")]
    both = threading.Barrier(2)
    problems: list[BaseException] = []

    def write(first: Any) -> None:
        try:
            for _ in range(10):
                with transaction.atomic():
                    create_token(user=first, name="x", scopes=("read",), expires_at=timezone.now() + timedelta(days=1))
                    both.wait(timeout=60)
                    type(first).objects.select_for_update().get(pk=people[0].pk)
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=[person]) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(lines(kind="token")) == 20
    assert check_trail().is_whole


def test_refusals_and_wrong_passwords_are_recorded_and_a_flood_is_not() -> None:
    caches["counters"].clear()
    viewer = Api(build.token(build.user("vic", "viewer"), "read"))
    for _ in range(3):
        assert viewer.post("/runs/", {}).status_code == 403
    assert [(line.actor, line.person, line.via) for line in lines(act="refused")] == [
        ("token", "vic", "POST api:runs")
    ] * 3
    client = Client()
    client.post("/login/", {"username": "vic", "password": "wrong"})
    [failed] = lines(act="sign_in_failed")
    assert (failed.actor, failed.person, failed.changes) == ("anonymous", "", {})  # people type passwords as names
    for _ in range(MAX_OF_ADDRESS + 5):
        Client().get("/api/v1/runs/", headers={"Authorization": "Bearer evb_wrong"})
    assert len(lines(act="refused")) + len(lines(act="sign_in_failed")) == MAX_OF_ADDRESS


def test_a_command_of_the_server_is_an_act_of_its_account(database_url: str) -> None:
    environment = {
        **os.environ,
        "DATABASE_URL": database_url,
        "EVALBOARD_SECRET_KEY": "k" * 60,
        "USER": "olga",
        "LOGNAME": "olga",
    }
    command = [sys.executable, "manage.py", "add_person", "grace", "--role", "engineer"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    written = [(line.actor, line.person, line.via, line.act) for line in lines(kind="person")]
    assert written[0] == ("operator", "olga", "manage.py add_person", "created")
    assert {each[:3] for each in written} == {written[0][:3]}


WRITING = (  # in an order in which all succeed
    ("load_policies",),
    ("load_profiles",),
    ("load_samples", "--no-engine", "--no-runs"),
    ("add_person", "grace", "--role", "engineer"),
    ("add_token", "grace", "ci", "--scope", "read"),
    ("sign_in_link", "grace"),
    ("remove_person", "grace"),
    ("sample_tour", "local"),
    ("retention", "--apply"),
)
WITHOUT_LINE = {
    "grant_roles": "changes rights of the database's roles, and no row",
    "is_alive": "reads",
    "verify_stored": "reads",
    "read_import": "works for a request, in whose name it writes: test_import_readings.py",
}


def test_every_command_that_writes_leaves_a_line(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR, settings.HAS_SECRET_KEY = tmp_path, True
    assert {command for command, *_ in WRITING} | WITHOUT_LINE.keys() == {
        command for command, app in get_commands().items() if app == "runs"
    }
    for command, *arguments in WRITING:
        if command == "retention":
            create_rule(what="texts", days=1)
            old = timezone.now() - timedelta(days=9)
            RunRecord.objects.update(created_at=old, finished_at=old)
        with connection.execute_wrapper(operator_recorder(command)):
            call_command(command, *arguments, stdout=io.StringIO(), stderr=io.StringIO())
        assert lines(actor="operator", via=f"manage.py {command}"), command
    [linked] = lines(via="manage.py sign_in_link")
    assert (linked.act, linked.kind, linked.name) == ("link_made", "person", "grace")
    assert check_trail().is_whole


def test_lines_are_filtered() -> None:
    build.user("ada", "admin")
    client = Client()
    client.force_login(build.user("root", "admin"))
    client.post("/settings/people/", {"name": "grace", "role": "viewer"})
    rows = audit_lines(AuditFilter(person="root", kind="person", act="created")).rows()
    assert [row.name for row in rows] == ["grace"]
    page = client.get("/settings/audit/?person=root&kind=person&act=created").content.decode()
    assert page.count("<tr>") == 2
    day = timezone.now().date()
    assert len(audit_lines(AuditFilter(until=timezone.now() - timedelta(days=2))).rows()) == 0
    assert "No line matches." in client.get(f"/settings/audit/?until={day - timedelta(days=2)}").content.decode()
    assert client.get("/settings/audit/?until=9999-12-31").status_code == 200
    assert client.get("/settings/audit/?check=1").content.decode().count("are as they were written") == 1
