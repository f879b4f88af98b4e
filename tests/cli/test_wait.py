"""`evalboard wait`: exit codes, a server that goes and comes, Ctrl-C, and a terminal."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess, Popen

import pytest

from runs.models import Run
from tests import build
from tests.cli.conftest import ROOT, command, hears_ctrl_c

Call = Callable[..., "CompletedProcess[str]"]
Start = Callable[..., "Popen[str]"]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def test_a_finished_run_is_0_and_prints_its_range(evalboard: Call) -> None:
    run = build.finished_run()
    done = evalboard("wait", str(run.pk))
    assert done.returncode == 0
    assert done.stdout.startswith(f"Run {run.pk} finished: 33.3 to 66.7 points over 2 repeats. http://")
    assert "warning: One of 3 cases is worth 33.3 points." in done.stderr.splitlines()


@pytest.mark.parametrize("status", ["incomplete", "failed", "cancelled"])
def test_any_other_end_is_4(evalboard: Call, status: str) -> None:
    run = build.run()
    Run.objects.filter(pk=run.pk).update(status=status)
    done = evalboard("wait", str(run.pk))
    assert (done.returncode, f"Run {run.pk} is {status}: 0 of 6 responses, no score." in done.stdout) == (4, True)


def test_a_run_of_two_buckets_is_0_and_has_no_score(evalboard: Call) -> None:
    run = build.run(repeats=1)
    first, second = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    build.decode(run, 1, ("blue",) * 3, by=[first, first, second])
    done = evalboard("wait", str(run.pk))
    assert (done.returncode, "finished in 2 buckets, so no score is given" in done.stdout) == (0, True)


def test_json_is_the_run_and_nothing_else(evalboard: Call) -> None:
    run = build.finished_run()
    done = evalboard("wait", str(run.pk), "--json")
    assert (json.loads(done.stdout)["id"], done.stderr) == (str(run.pk), "")


def test_it_waits_until_the_run_has_ended(started: Start) -> None:
    run = build.run(repeats=1)
    process = started("wait", str(run.pk))
    assert process.stderr is not None
    assert process.stderr.readline() == f"run {run.pk}: queued, 0 of 3 responses\n"
    build.decode(run, 1, ("blue",) * 3, ends=False)
    assert process.stderr.readline().startswith(f"run {run.pk}: running, 3 of 3 responses")
    Run.objects.filter(pk=run.pk).update(status="failed")
    assert process.wait(timeout=20) == 4


def test_ctrl_c_leaves_the_run_going_and_says_how_to_come_back(started: Start) -> None:
    run = build.run()
    process = started("wait", str(run.pk))
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err == f"Run {run.pk} goes on. Come back with: evalboard wait {run.pk}\n"
    run.refresh_from_db()
    assert (run.status, run.is_cancel_wanted) == ("queued", False)


def test_a_run_that_is_not_there_is_64(evalboard: Call) -> None:
    done = evalboard("wait", "999")
    assert (done.returncode, done.stderr) == (64, "evalboard: There is no run 999.\n")


def test_a_server_that_does_not_answer_is_given_up_on(evalboard: Call) -> None:
    done = evalboard("wait", "7", "--give-up-after", "1", EVALBOARD_URL=f"http://127.0.0.1:{free_port()}")
    assert done.returncode == 4
    assert "come back with: evalboard wait 7" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_that_restarts_is_waited_for(started: Start, database_url: str, tmp_path: Path) -> None:
    run = build.run(repeats=1)
    port = free_port()
    server = serve(port, database_url, tmp_path)
    try:
        process = started("wait", str(run.pk), EVALBOARD_URL=f"http://127.0.0.1:{port}")
        assert process.stderr is not None
        assert "queued" in process.stderr.readline()
        server.terminate()
        server.wait(timeout=20)
        assert "Asking again for up to 300 s." in process.stderr.readline()
        build.decode(run, 1, ("blue",) * 3)
        server = serve(port, database_url, tmp_path)
        out, _ = process.communicate(timeout=30)
    finally:
        server.terminate()
        server.wait(timeout=20)
    assert (process.returncode, "100.0 points" in out) == (0, True)


def serve(port: int, database_url: str, data_dir: Path) -> "Popen[bytes]":
    """The web side as a process, up when this returns."""
    variables = {**os.environ, "DATABASE_URL": database_url, "EVALBOARD_DATA_DIR": str(data_dir)}
    gunicorn = [sys.executable, "-m", "gunicorn", "evalboard.wsgi", "--bind", f"127.0.0.1:{port}"]
    server = subprocess.Popen(gunicorn, env=variables, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return server
        time.sleep(0.05)
    server.kill()
    raise AssertionError("the server did not come up")


def test_a_terminal_shows_a_bar_and_ci_shows_lines(environment: dict[str, str]) -> None:
    run = build.run(repeats=1)
    on_terminal = stderr_of_wait(run, {**environment, "CI": "", "TERM": "xterm"}, until="0/3")
    assert "━" in on_terminal
    assert "\x1b[" in on_terminal
    in_ci = stderr_of_wait(run, {**environment, "CI": "true", "TERM": "xterm"}, until="0 of 3")
    assert in_ci.startswith(f"run {run.pk}: queued, 0 of 3 responses")
    assert "\x1b[" not in in_ci


def stderr_of_wait(run: Run, variables: dict[str, str], *, until: str) -> str:
    """What a person at a terminal sees who presses Ctrl-C once `until` is there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("wait", str(run.pk)),
        env=variables,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        preexec_fn=hears_ctrl_c,
    )
    os.close(theirs)
    seen, deadline = b"", time.monotonic() + 20
    while until.encode() not in seen and time.monotonic() < deadline:
        seen += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    while time.monotonic() < deadline:
        try:
            seen += os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    assert process.wait(timeout=20) == 130
    return seen.decode()
