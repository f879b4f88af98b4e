"""Exit codes where stdout is a pipe that closes or a disk that is full: the real command, as a process."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from evalboard.cli import endpoint
from evalboard.cli.main import main
from tests.cli.answers import recorded
from tests.cli.conftest import FOREIGN, ROOT, SECONDS
from tests.nightly import nightly

LONG = "One more line of many.\n" * 20_000  # many times what a pipe holds
CODES = {"ship": 0, "no_ship": 1, "inconclusive": 2, "not_comparable": 3}
STATUSES = ("finished", "failed", "running")  # of runs by their numbers
FULL = "evalboard: The result cannot be written to stdout: No space left on device."


class Board(BaseHTTPRequestHandler):
    """Answers what was recorded, with long texts; releases are numbered by the exit codes of their verdicts."""

    def do_GET(self) -> None:
        address = self.path.removeprefix("/api/v1")
        body = json.dumps(answer(address)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, form: str, *values: Any) -> None:
        pass


def answer(address: str) -> Any:
    read = {path: body for path, (_, body) in recorded().items()}
    kind, number = address.strip("/").partition("/")[::2]
    if kind == "releases":
        verdict = list(CODES)[int(number)]
        return read["/releases/2/"] | {"verdict": verdict, "summary": LONG, "padding": LONG}
    if kind == "probes":
        finding = {"state": "not_honoured", "sentence": LONG, "numbers": {}}
        return read["/probes/1/"] | {"kind": "seed", "status": "finished", "finding": finding}
    if number.partition("/")[2].startswith("verification"):
        return read["/forced/1/verification/?control=2&numerics=3"] | {"state": "other_model", "sentence": LONG}
    if kind == "forced":
        return read["/forced/1/"]
    if "forced" in address:
        return read[address.partition("?")[0]]
    if kind == "runs" and number.isdigit():
        return read["/runs/1/"] | {"status": STATUSES[int(number)], "warnings": []}
    if kind == "runs":
        return read["/runs/1/cases/"]
    found = read[address.partition("?")[0]]
    return found | {"results": [row | {"slug": f"endpoint-{n}"} for n in range(5_000) for row in found["results"][:1]]}


@pytest.fixture
def board() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Board)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def shell(line: str, url: str, folder: Path, **changes: str) -> tuple[int, str]:
    """Run a pipeline whose first command is `evalboard`; return that one's exit code, and the stderr of all."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    variables |= {"EVALBOARD_URL": url, "EVALBOARD_TOKEN": "evb_none", "CI": "true", "PYTHONPATH": str(ROOT), **changes}
    script = f'evalboard() {{ "{sys.executable}" -m evalboard "$@"; }}\n{line}\nexit "${{PIPESTATUS[0]}}"'
    call = ["bash", "-c", script]
    done = subprocess.run(call, cwd=folder, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.returncode, done.stderr


NO_SHIP = ("no_ship", "| head -1")
ALSO = [("no_ship", reader) for reader in ("--json | head -c 10", "2>&1 | true")]
FEW = [("ship", "| true"), ("inconclusive", "> /dev/full")]
ALL = [(verdict, reader) for verdict in CODES for reader in ("| true", "> /dev/full")]


@pytest.mark.parametrize(
    ("verdict", "reader"), [NO_SHIP, *FEW, *nightly([*ALSO, *(each for each in ALL if each not in FEW)])]
)
def test_a_verdict_keeps_its_code(board: str, tmp_path: Path, verdict: str, reader: str) -> None:
    code, err = shell(f"evalboard release --show {CODES[verdict]} {reader}", board, tmp_path)
    assert (code, "Traceback" in err, "Exception" in err) == (CODES[verdict], False, False)
    assert (FULL in err) == ("full" in reader)


@pytest.mark.parametrize("reader", ["| true", *nightly(["> /dev/full"])])
def test_a_report_is_written_all_the_same(board: str, tmp_path: Path, reader: str) -> None:
    code, _ = shell(f"evalboard release --show 1 --summary out.md {reader}", board, tmp_path)
    assert (code, (tmp_path / "out.md").exists()) == (1, True)


@pytest.mark.nightly
@pytest.mark.parametrize("reader", ["| true", *nightly(["--json > /dev/full"])])
def test_what_other_commands_judge_keeps_its_code(board: str, tmp_path: Path, reader: str) -> None:
    for name, logprob in (("sampler", -0.1), ("trainer", -1.5)):
        rows = [{"token_ids": [1, 2, 3], "logprobs": [logprob, -0.2, logprob - 0.01 * n]} for n in range(20)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    verify = "verify 1 --on local --control 2 --numerics 6"
    for call in ("probe --show 1", "on-policy sampler.jsonl --trainer trainer.jsonl", verify):
        code, err = shell(f"evalboard {call} {reader}", board, tmp_path)
        assert (code, "Traceback" in err) == (1, False), call


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        pytest.param("endpoint list | true", 141, "", id="no verdict, none read"),
        pytest.param("--help | true", 141, "", id="help", marks=pytest.mark.nightly),
        pytest.param("release --help | true", 141, "", id="help of a command", marks=pytest.mark.nightly),
        pytest.param("wait 2 2>&1 | true", 141, "", id="it closes before the run has ended", marks=pytest.mark.nightly),
        pytest.param("wait 1 | true", 4, "", id="the run failed", marks=pytest.mark.nightly),
        pytest.param("wait 0 | true", 0, "", id="the run finished", marks=pytest.mark.nightly),
        pytest.param("wait x 2>&1 | true", 64, "", id="wrong use", marks=pytest.mark.nightly),
        pytest.param("endpoint list > /dev/full", 4, FULL, id="a full disk"),
        pytest.param(
            "wait 0 > /dev/full", 4, FULL, id="a full disk, and a run that finished", marks=pytest.mark.nightly
        ),
        pytest.param("--help > /dev/full", 4, FULL, id="a full disk, and help", marks=pytest.mark.nightly),
        pytest.param("endpoint list > /dev/full 2>&1", 4, "", id="two full disks", marks=pytest.mark.nightly),
        pytest.param(
            "release --show 3 > /dev/full 2>&1", 3, "", id="two full disks, and a verdict", marks=pytest.mark.nightly
        ),
        pytest.param("release --show 3 >&- 2>&-", 3, "", id="neither stdout nor stderr"),
    ],
)
def test_without_a_verdict(board: str, tmp_path: Path, line: str, code: int, words: str) -> None:
    assert shell(f"evalboard {line}", board, tmp_path) == (code, f"{words}\n" if words else "")


@pytest.mark.parametrize("unbuffered", ["1", *nightly([""])])
def test_a_pipe_that_closes_within_a_text_is_seen(board: str, tmp_path: Path, unbuffered: str) -> None:
    """Unbuffered, Python itself takes no notice of how much was written."""
    assert shell("evalboard endpoint list | head -1", board, tmp_path, PYTHONUNBUFFERED=unbuffered) == (141, "")


def test_a_fault_of_ours_is_no_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delattr(endpoint, "connect")
    with pytest.raises(SystemExit) as ended:
        main(["endpoint", "list"])
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.startswith("Traceback")) == (70, "", True)
    assert err.splitlines()[-1].startswith("evalboard: This is a fault in Evalboard: NameError: ")
