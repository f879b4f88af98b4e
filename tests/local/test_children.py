"""Child processes end with their parent and leave nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from evalboard.local.children import Child, in_words, wait_until

PATIENCE_SECONDS = 60.0
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(helper.pid, flush=True)
time.sleep(600)
"""
PARENT = """
import sys, time
from evalboard.local.children import Child
print(Child("sleeper", ["sleep", "600"], log=None).pid, flush=True)
time.sleep(600)
"""


def test_a_child_ends_when_its_parent_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: not is_alive(child), PATIENCE_SECONDS)


def test_stopping_kills_a_child_that_does_not_listen_and_its_helpers(tmp_path):
    child = Child("stubborn", [sys.executable, "-c", STUBBORN], log=tmp_path / "log", patience=0.2)
    assert wait_until(lambda: child.end_of_log(lines=1) != "", PATIENCE_SECONDS)
    helper = int(child.end_of_log(lines=1))
    child.stop()
    assert child.exit_status() == -signal.SIGKILL
    assert wait_until(lambda: not is_alive(helper), PATIENCE_SECONDS)


def test_stopping_says_what_it_waits_for_and_how_long_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr("evalboard.local.children.MOMENT_SECONDS", 0.0)
    said: list[str] = []
    child = Child("the runner", [sys.executable, "-c", STUBBORN], log=tmp_path / "log", patience=0.2)
    assert wait_until(lambda: child.end_of_log(lines=1) != "", PATIENCE_SECONDS)
    child.stop(said.append)
    assert said == ["Waiting for the runner to end, for at most 0 s; Ctrl-C ends it at once."]


def test_what_a_child_that_ended_by_itself_left_behind_is_killed(tmp_path):
    leaves = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"
    child = Child("leaver", [sys.executable, "-c", leaves], log=tmp_path / "log")
    assert wait_until(lambda: child.exit_status() == 0, PATIENCE_SECONDS)
    helper = int(child.end_of_log(lines=1))
    assert wait_until(lambda: not is_alive(helper), PATIENCE_SECONDS)


def test_what_a_captured_child_writes_is_in_no_log_however_much_it_is(tmp_path):
    writes = "import sys; print('secret ' * 100_000); print('a reason', file=sys.stderr)"
    child = Child("writer", [sys.executable, "-c", writes], log=tmp_path / "log", captures=True)
    assert wait_until(lambda: bool(child.output()) and child.exit_status() == 0, PATIENCE_SECONDS)
    assert child.output().split() == ["secret"] * 100_000
    assert (tmp_path / "log").read_text() == "a reason\n"


def test_stopping_twice_is_harmless(tmp_path):
    child = Child("sleeper", ["sleep", "600"], log=tmp_path / "log")
    child.stop()
    child.stop()
    assert in_words(child.exit_status()) == "signal SIGTERM"


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_parent_that_is_alive_counts_as_alive():
    assert is_alive(os.getpid())
