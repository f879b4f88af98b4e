"""`evalboard export`: a file that is whole or not there, whatever becomes of the server."""

import csv
import hashlib
import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import CompletedProcess, Popen
from typing import Any

import pytest

from evalboard.core.archive import RunArchive
from runs.models import RunRecord
from tests import build
from tests.frontend import stage, two_runs
from tests.nightly import few
from tests.runs import judged
from tests.servers import free_port

Call = Callable[..., "CompletedProcess[str]"]
Start = Callable[..., "Popen[str]"]


def run_of_three() -> RunRecord:
    return build.finished_run(("blue", "red", None), ("blue", "=1+1\r\n,", "red"))


def test_a_run_is_written_under_a_name_of_its_own(
    evalboard: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = run_of_three()
    monkeypatch.chdir(tmp_path)
    done = evalboard("export", str(run.pk))
    assert (done.returncode, done.stderr) == (0, "")
    path = tmp_path / f"run-{run.pk}.zip"
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert re.fullmatch(rf"run-{run.pk}\.zip: run {run.pk}, [0-9.]+ kB, sha256 {sha256}\n", done.stdout)
    assert sorted(found.name for found in tmp_path.iterdir()) == [path.name]
    with path.open("rb") as file:
        archive = RunArchive(file)
        archive.check()
        assert archive.manifest["run"]["id"] == str(run.pk)


@pytest.mark.nightly
def test_a_run_of_the_server_is_a_side_of_diff(evalboard: Call, variables: dict[str, str], tmp_path: Path) -> None:
    run, path = run_of_three(), tmp_path / "run.zip"
    assert evalboard("export", str(run.pk), "--to", str(path)).returncode == 0
    address = f"{variables['EVALBOARD_URL']}/runs/{run.pk}/"
    done = evalboard("diff", address, str(path))
    assert (done.returncode, done.stdout.startswith(f"{path} against {address}: 0.0 points")) == (0, True), done.stderr
    assert done.stdout.count("The case counts as missing.") == 1  # of the case that has no answer
    waiting = build.run()
    for side, code, words in (
        (f"{variables['EVALBOARD_URL']}/runs/{waiting.pk}", 4, f"Wait for it with `evalboard wait {waiting.pk}`."),
        (f"{variables['EVALBOARD_URL']}/runs/999999", 64, "There is no run 999999."),
        ("https://elsewhere.example.com/runs/12", 64, "is no run of http://"),
    ):
        done = evalboard("diff", side, str(path))
        assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    done = evalboard("diff", address, str(path), EVALBOARD_TOKEN=None)
    assert (done.returncode, "No token is set." in done.stderr) == (64, True), done.stderr


def test_a_release_is_written_and_judged_again_from_its_file(
    evalboard: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    policy = {"slug": "quick", "rule": "paired", "tolerance_points": 20.0, "looks": [3, 10, 20]}
    version, process = judged.suite(n_cases=8, policy=policy), build.process()
    release = judged.release(*(judged.run(version, repeats=3, by=process) for _ in range(2)))
    monkeypatch.chdir(tmp_path)
    done = evalboard("export", "--release", str(release.pk))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"release-{release.pk}.zip: release {release.pk}, ")
    checked = evalboard("verify-release", f"release-{release.pk}.zip")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.startswith(f"Release {release.pk}: ship. ")
    assert evalboard("export", "--release", str(release.pk), "--cases", "csv").returncode == 64


@pytest.mark.parametrize("form", few(["csv", "jsonl"], 1))
def test_cases_are_written_as_a_table(evalboard: Call, tmp_path: Path, form: str) -> None:
    run, path = run_of_three(), tmp_path / "out" / f"cases.{form}"
    path.parent.mkdir()
    done = evalboard("export", str(run.pk), "--cases", form, "--to", str(path), "--where", "only=failed", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["n_rows"], facts["n_bytes"], facts["form"]) == (4, path.stat().st_size, form)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file)) if form == "csv" else [json.loads(line) for line in file]
    assert {row["case"] for row in rows} == {"sky", "sea", "a/b c"} - {"sky"}
    assert [found.name for found in path.parent.iterdir()] == [path.name]


@pytest.mark.nightly
def test_the_pairs_of_a_comparison_are_written(evalboard: Call, tmp_path: Path, settings: Any) -> None:
    stage.stage(model_root=settings.MODEL_ROOTS[0], n_cases=6)
    ours, theirs = two_runs.near_tie(2)
    baseline, candidate = two_runs.make({2: ours}, {2: theirs})
    path = tmp_path / "pairs.jsonl"
    sides = (str(baseline.pk), str(candidate.pk))
    done = evalboard("export", "--compare", *sides, "--cases", "jsonl", "--to", str(path), "--where", "cause=near_tie")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{path}: run {sides[1]} against run {sides[0]}, 1 row, ")
    assert [json.loads(line)["case"] for line in path.read_text().splitlines()] == ["case-002"]


def test_a_file_that_is_there_is_replaced(evalboard: Call, tmp_path: Path) -> None:
    run, path = run_of_three(), tmp_path / "run.zip"
    path.write_text("old")
    assert evalboard("export", str(run.pk), "--to", str(path)).returncode == 0
    assert path.read_bytes()[:2] == b"PK"
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("seven",),
        ("7", "--cases", "xml"),
        ("7", "--where", "only=failed"),
        ("7", "--cases", "csv", "--where", "failed"),
        ("7", "--compare", "1", "2", "--cases", "csv"),
        ("--compare", "1", "2"),
        ("--compare", "1", "two", "--cases", "csv"),
        ("7", "--to", "."),
        ("7", "--to", "nowhere/run.zip"),
    ],
)
def test_wrong_use_is_64(evalboard: Call, arguments: tuple[str, ...]) -> None:
    done = evalboard("export", *arguments)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("evalboard: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("999",), "There is no run 999."),
        (("{run}",), "has no repeat that has ended"),
        (("{run}", "--cases", "csv", "--where", "onyl=failed"), "onyl"),
    ],
)
def test_what_the_server_refuses_is_64_and_leaves_no_file(
    evalboard: Call, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    run = build.run()
    folder = tmp_path / "out"
    folder.mkdir()
    done = evalboard("export", *(part.format(run=run.pk) for part in arguments), "--to", str(folder / "file"))
    assert done.returncode == 64
    assert said in done.stderr
    assert list(folder.iterdir()) == []


def test_a_server_that_is_not_there_is_4(evalboard: Call, tmp_path: Path) -> None:
    done = evalboard("export", "7", "--to", str(tmp_path / "x"), EVALBOARD_URL=f"http://127.0.0.1:{free_port()}")
    assert (done.returncode, "does not answer" in done.stderr) == (4, True)
    assert not (tmp_path / "x").exists()


# --- what comes is not what was sent


@contextmanager
def server(body: bytes, *, announced: int | None = None, **headers: str) -> Iterator[str]:
    """A server that sends this and no more, where a proxy might have cut it; `announced`: the length it promises."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that the server calls
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            if announced is not None:
                self.send_header("Content-Length", str(announced))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
            if self.path.endswith("/export/") and body == b"slow":
                stopped.wait(20)

        def log_message(self, *_: Any) -> None:
            return

    stopped = threading.Event()
    found = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{found.server_address[1]}"
    finally:
        stopped.set()
        found.shutdown()
        thread.join()
        found.server_close()


ZIP, CSV, JSONL = "application/zip", "text/csv; charset=utf-8", "application/x-ndjson"


@pytest.mark.parametrize(
    ("arguments", "body", "announced", "headers", "said"),
    few(
        [
            ((), b"PK half", 100, {"Content_Type": ZIP}, "does not answer, or no longer"),
            ((), b"PK half", None, {"Content_Type": ZIP}, "not whole, so nothing was kept"),
            (("--cases", "csv"), b"a\r\n1\r\n", None, {"Content_Type": CSV, "X_Row_Count": "2"}, "1 of 2 rows came"),
            (("--cases", "csv"), b'a\r\n"1\r\n2', None, {"Content_Type": CSV, "X_Row_Count": "2"}, "1 of 2 rows came"),
            (("--cases", "jsonl"), b"{}\n{}\n", None, {"Content_Type": JSONL, "X_Row_Count": "3"}, "2 of 3 rows came"),
        ],
        2,
    ),
    ids=["connection broken", "archive cut by a proxy", "csv cut", "csv cut in a cell", "jsonl cut"],
)
def test_what_comes_in_part_is_4_and_leaves_no_file(
    evalboard: Call,
    tmp_path: Path,
    arguments: tuple[str, ...],
    body: bytes,
    announced: int | None,
    headers: dict[str, str],
    said: str,
) -> None:
    path = tmp_path / "out" / "file"
    path.parent.mkdir()
    path.write_text("the one before")
    with server(body, announced=announced, **headers) as url:
        done = evalboard("export", "7", *arguments, "--to", str(path), EVALBOARD_URL=url)
    assert (done.returncode, done.stdout) == (4, "")
    assert said in done.stderr
    assert [found.read_text() for found in path.parent.iterdir()] == ["the one before"]


def test_another_server_is_64(evalboard: Call, tmp_path: Path) -> None:
    with server(b"<p>", Content_Type="text/html") as url:
        done = evalboard("export", "7", "--to", str(tmp_path / "x"), EVALBOARD_URL=url)
    assert (done.returncode, "is no Evalboard" in done.stderr) == (64, True)


@pytest.mark.nightly
def test_ctrl_c_leaves_no_file(started: Start, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    with server(b"slow", announced=100, Content_Type=ZIP) as url:
        process = started("export", "7", "--to", str(folder / "run.zip"), EVALBOARD_URL=url)
        while not list(folder.iterdir()):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert list(folder.iterdir()) == []
