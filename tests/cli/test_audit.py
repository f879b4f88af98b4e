"""`evalboard audit` exports and checks the audit trail; `evalboard comment` writes, lists and withdraws comments."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from evalboard.cli.errors import FAILED, WRONG_USE
from runs.models import CommentRecord
from tests import build

Call = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def admin_token(transactional_db: None) -> str:
    return build.token(build.user("ada", "admin"), "read", "admin")


def test_an_export_is_checked_without_a_server(evalboard: Call, admin_token: str, tmp_path: Path) -> None:
    exported = evalboard("audit", EVALBOARD_TOKEN=admin_token).stdout
    lines = [json.loads(line) for line in exported.splitlines()]
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    tokens = evalboard("audit", "--kind", "token", EVALBOARD_TOKEN=admin_token).stdout.splitlines()
    assert {json.loads(line)["kind"] for line in tokens} == {"token"}
    verified = evalboard("audit", "--verify", EVALBOARD_TOKEN=admin_token)
    assert verified.stdout.startswith(f"{len(lines)} lines, whole.")
    file = tmp_path / "audit.jsonl"
    file.write_text(exported)
    checked = evalboard("audit", "--verify-file", str(file), EVALBOARD_URL=None)
    assert (checked.returncode, checked.stdout) == (0, verified.stdout)
    file.write_text(exported.replace('"name": "ada"', '"name": "eve"', 1))
    changed = evalboard("audit", "--verify-file", str(file), EVALBOARD_URL=None)
    assert changed.returncode == FAILED
    assert changed.stdout == "The audit trail was changed. Line 5 was changed: its digest is wrong.\n"
    file.write_text("{}")
    assert evalboard("audit", "--verify-file", str(file)).returncode == WRONG_USE


def test_a_token_without_the_scope_admin_exports_nothing(evalboard: Call) -> None:
    refused = evalboard("audit")
    assert (refused.returncode, refused.stdout) == (WRONG_USE, "")
    assert "admin" in refused.stderr


def test_a_comment_is_written_listed_and_withdrawn(evalboard: Call, transactional_db: None) -> None:
    run = str(build.finished_run().pk)
    assert evalboard("comment", "run", run).stdout == f"There is no comment on run {run}.\n"
    assert "Look at *this*." in evalboard("comment", "run", run, "Look at *this*.").stdout
    comment = CommentRecord.objects.get()
    [listed] = json.loads(evalboard("comment", "run", run, "--json").stdout)
    assert (listed["id"], listed["person"], listed["kind"]) == (str(comment.pk), "ci", "run")
    withdrawn = evalboard("comment", "run", run, "--withdraw", str(comment.pk)).stdout
    assert "withdrawn" in withdrawn
    assert "this" not in withdrawn
    assert evalboard("comment", "run", "999999", "x").returncode == WRONG_USE
