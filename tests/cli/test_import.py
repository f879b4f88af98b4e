"""`evalboard import`."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import zstandard

from runs.models import ImportRecord
from tests import build
from tests.importers import batch_log

Call = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def log(tmp_path: Path) -> str:
    file = tmp_path / "output.jsonl"
    file.write_bytes(batch_log.output({"sky": "blue", "sea": "green"}))
    return str(file)


def test_a_log_is_imported_once(evalboard: Call, log: str) -> None:
    first, again = evalboard("import", log), evalboard("import", log)
    assert (first.returncode, first.stderr) == (0, "")
    found = ImportRecord.objects.get()
    assert first.stdout.startswith(f"{found.tool}, read as batch: 1 run imported.\nRun ")
    assert f"Note: {found.notes[0]}" in first.stdout
    assert (again.returncode, "read as batch: was imported before: 1 run." in again.stdout) == (0, True)


def test_a_large_log_is_waited_for(
    evalboard: Call, log: str, tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)  # of the process that reads it
    settings.IMPORT_WAIT_BYTES = 0
    (tmp_path / "none.jsonl").write_text('{"id": 1}\n')
    stored, refused = evalboard("import", log), evalboard("import", str(tmp_path / "none.jsonl"), "--format", "batch")
    assert (stored.returncode, "read as batch: 1 run imported." in stored.stdout) == (0, True)
    assert (refused.returncode, "none.jsonl" in refused.stderr) == (64, True)
    assert ImportRecord.objects.count() == 1


@pytest.mark.nightly
def test_suite_and_format_are_sent_and_json_is_the_whole_answer(evalboard: Call, log: str) -> None:
    build.suite("colours", ["sky", "sea"])
    done = evalboard("import", log, "--format", "batch", "--suite", "colours", "--json")
    body = json.loads(done.stdout)
    assert (body["format"], body["files"][0]["name"]) == ("batch", "output.jsonl")
    assert body["runs"][0]["suite"] == {"slug": "colours", "version": 1}


def test_what_is_wrong_is_one_sentence_and_64(evalboard: Call, log: str, tmp_path: Path) -> None:
    (tmp_path / "diaries").mkdir()
    (tmp_path / "diaries" / "monday.txt").write_text("Dear diary")
    (tmp_path / "notes.txt").write_text("Dear diary")
    for arguments, words in (
        (["no/such.eval"], "no/such.eval cannot be read: No such file"),
        ([str(tmp_path / "diaries")], "diaries holds no log, but 1 file of no known format."),
        ([str(tmp_path / "notes.txt")], "No known format fits notes.txt"),
        ([log, "--format", "inspect"], "output.jsonl"),
    ):
        done = evalboard("import", *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (64, "", 1)
        assert words in done.stderr
    assert not ImportRecord.objects.exists()


def test_a_server_that_is_not_there_is_4(evalboard: Call, log: str) -> None:
    done = evalboard("import", log, EVALBOARD_URL="http://127.0.0.1:9")
    assert (done.returncode, "does not answer" in done.stderr) == (4, True)


@pytest.mark.nightly
def test_a_folder_gives_its_logs_compressed_ones_too_and_says_what_it_left_out(evalboard: Call, tmp_path: Path) -> None:
    (tmp_path / "logs" / "monday").mkdir(parents=True)
    (tmp_path / "logs" / ".cache").mkdir()
    line = b'{"suite": "%s", "case": "sky", "answer": "blue", "score": 1}\n'
    (tmp_path / "logs" / "a.jsonl").write_bytes(line % b"one")
    (tmp_path / "logs" / "monday" / "b.jsonl.gz").write_bytes(gzip.compress(line % b"two"))
    (tmp_path / "logs" / "monday" / "c.jsonl.zst").write_bytes(zstandard.compress(line % b"three"))
    (tmp_path / "logs" / ".cache" / "d.jsonl").write_bytes(line % b"four")
    (tmp_path / "logs" / "run.log").write_text("started")
    done = evalboard("import", str(tmp_path / "logs"))
    assert (done.returncode, done.stderr) == (0, "No known format fits run.log: left out.\n")
    assert "read as scores: 3 runs imported." in done.stdout
    assert [each["name"] for each in ImportRecord.objects.get().files] == ["a.jsonl", "b.jsonl.gz", "c.jsonl.zst"]


@pytest.mark.nightly
def test_a_log_comes_by_standard_input(variables: dict[str, str], environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "evalboard", "import", "-"]
    log = gzip.compress(b'{"case": "sky", "answer": "blue"}\n')
    done = subprocess.run(command, input=log, capture_output=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [each["name"] for each in ImportRecord.objects.get().files] == ["stdin"]


@pytest.mark.nightly
def test_more_logs_than_go_at_once_are_sent_one_group_after_another(evalboard: Call, tmp_path: Path) -> None:
    for n in range(22):
        line = {"suite": f"suite {n}", "case": "sky", "answer": "blue", "score": 1}
        (tmp_path / f"{n:02}.jsonl").write_text(json.dumps(line))
    done = evalboard("import", *(str(path) for path in sorted(tmp_path.glob("*.jsonl"))), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert [len(json.loads(line)["runs"]) for line in done.stdout.splitlines()] == [20, 2]
