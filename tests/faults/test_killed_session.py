"""Whoever kills a session of tests has killed all that it started: workers, engines, servers, databases, browsers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.processes import command_of, is_gone
from tests.servers import RedisServer

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 600.0
AT_WORK = ("redis-server", "postgres", "gunicorn", "-m tests.nursery", "scripted_host.py", "--type=renderer")
RUNS_A_PROGRAM = """
import sys
from tools.test import run
run([sys.executable, "-c", "print('at work', flush=True); import time; time.sleep(3600)"])
"""


@pytest.fixture
def session(tmp_path: Path, chromium: str) -> Iterator[psutil.Process]:
    """Another session of tests, side by side with nothing, in the middle of its only test."""
    if not RedisServer.is_installed():
        pytest.skip("No redis-server on PATH; Debian has it as the package `redis-server`.")
    ready, log = tmp_path / "ready", tmp_path / "session.log"
    command = [sys.executable, "-m", "pytest", "tests/faults/killed_session.py", "-n", "1", "-p", "no:cacheprovider"]
    # Of its own are its database (this session's has this one's rows) and its place among pytest-xdist's workers.
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "DATABASE_URL"))}
    environment = {**ours, "KILLED_SESSION_IS_READY": str(ready)}
    with log.open("wb") as out, subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out) as started:
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not ready.exists():
                assert started.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.2)
            yield psutil.Process(started.pid)
        finally:
            started.kill()


@pytest.mark.parametrize("killed", ["the session", "one of its sessions side by side"])
def test_a_killed_session_leaves_nothing_behind(session: psutil.Process, killed: str) -> None:
    [one] = session.children()
    left = one.children(recursive=True)
    commands = "\n".join(map(command_of, left))
    assert [words for words in AT_WORK if words not in commands] == []
    (session if killed == "the session" else one).kill()
    assert_gone([one, *left])


def test_what_runs_the_tests_takes_them_along() -> None:
    command = [sys.executable, "-c", RUNS_A_PROGRAM]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == "at work\n"
        left = psutil.Process(runner.pid).children()
        runner.send_signal(signal.SIGKILL)
        assert_gone(left)


def assert_gone(processes: list[psutil.Process]) -> None:
    assert processes
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_SECONDS)
    assert [command_of(each) for each in alive if not is_gone(each)] == []
