"""Whoever kills a session of tests has killed all that it started: workers, engines, servers, databases, browsers."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import Process, children_of, command_of, family_of, wait_for_end
from tests.servers import RedisServer
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
AT_WORK = ("redis-server", "postgres", "gunicorn", "-m tests.nursery", "scripted_host.py", "--type=renderer")
RUNS_A_PROGRAM = """
import sys
from tools.test import run
run([sys.executable, "-c", "print('at work', flush=True); import time; time.sleep(3600)"])
"""


@pytest.fixture
def session(tmp_path: Path, chromium: str) -> Iterator[Process]:
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
            wait_until(lambda: ready.exists() or started.poll() is not None)
            assert started.poll() is None, log.read_text()
            yield family_of(started.pid)[0]
        finally:
            started.kill()


@pytest.mark.nightly  # a whole session of tests, with a browser and a database of its own
@pytest.mark.parametrize("killed", ["the session", "one of its sessions side by side"])
def test_a_killed_session_leaves_nothing_behind(session: Process, killed: str) -> None:
    [one] = session.children()
    left = one.children(recursive=True)
    commands = "\n".join(map(command_of, left))
    assert [words for words in AT_WORK if words not in commands] == []
    (session if killed == "the session" else one).kill()
    wait_for_end(one, *left)


def test_what_runs_the_tests_takes_them_along() -> None:
    command = [sys.executable, "-c", RUNS_A_PROGRAM]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == "at work\n"
        left = children_of(runner.pid)
        assert left
        runner.send_signal(signal.SIGKILL)
        wait_for_end(*left)
