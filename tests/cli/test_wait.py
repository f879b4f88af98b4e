"""`evalboard wait`: exit codes, Ctrl-C, and a terminal."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from subprocess import CompletedProcess, Popen

import pytest

from runs.models import RunRecord
from runs.run import run_report
from tests import build
from tests.cli.conftest import ROOT, SECONDS, command
from tests.nightly import few
from tests.servers import free_port

Call = Callable[..., "CompletedProcess[str]"]
Start = Callable[..., "Popen[str]"]


def test_a_finished_run_is_0_and_prints_its_range(evalboard: Call) -> None:
    run = build.finished_run()
    done = evalboard("wait", str(run.pk))
    assert done.returncode == 0
    assert done.stdout.startswith(f"Run {run.pk} finished: 33.3 to 66.7 points over 2 repeats. http://")
    assert "info: One of 3 cases is 33.3 points." in done.stderr.splitlines()


def test_what_moves_the_score_of_an_external_server_is_its_own(evalboard: Call) -> None:
    run = build.run(repeats=2)
    RunRecord.objects.filter(pk=run.pk).update(is_reported=True)
    hosted = build.process(build.bucket(batch_class="observed"))
    for repeat, texts in enumerate((("blue", "red", "red"), ("blue", "blue", "red")), 1):
        build.decode(run, repeat, texts, by=hosted)
    split = run_report(run.pk).noise.split
    assert split is not None
    assert (split.sampler, split.batch) == (None, None)
    assert "from the server's sampling or batching" in split.text
    assert split.text in evalboard("wait", str(run.pk)).stdout.splitlines()


@pytest.mark.parametrize("status", few(["incomplete", "failed", "cancelled"], 1))
def test_any_other_end_is_4(evalboard: Call, status: str) -> None:
    run = build.run()
    RunRecord.objects.filter(pk=run.pk).update(status=status)
    done = evalboard("wait", str(run.pk))
    assert (done.returncode, f"Run {run.pk} is {status}: 0 of 6 responses, no score." in done.stdout) == (4, True)
    steps = [line for line in done.stderr.splitlines() if line.startswith("to do: ")]
    expected = {
        "failed": ["to do: Read the history", "to do: Run it again"],
        "incomplete": [
            "to do: See what the server answers: evalboard endpoint check local --wait",
            "to do: Run the missing responses",
        ],
    }
    assert steps == expected.get(status, [])


def test_a_run_of_two_buckets_is_0_and_has_no_score(evalboard: Call) -> None:
    run = build.run(repeats=1)
    first, second = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    build.decode(run, 1, ("blue",) * 3, by=[first, first, second])
    done = evalboard("wait", str(run.pk))
    assert (done.returncode, "finished in 2 buckets, each scored separately: " in done.stdout) == (0, True)


def test_json_is_the_run_and_nothing_else(evalboard: Call) -> None:
    run = build.finished_run()
    done = evalboard("wait", str(run.pk), "--json")
    assert (json.loads(done.stdout)["id"], done.stderr) == (str(run.pk), "")


def test_it_waits_until_the_run_has_ended(evalboard: Call) -> None:
    run = build.run(repeats=1)
    steps = [
        (f"run {run.pk}: queued, 0 of 3 responses\n", lambda: build.decode(run, 1, ("blue",) * 3, ends=False)),
        (
            f"run {run.pk}: running, 3 of 3 responses",
            lambda: RunRecord.objects.filter(pk=run.pk).update(status="failed"),
        ),
    ]
    assert evalboard("wait", str(run.pk), meanwhile=steps).returncode == 4


@pytest.mark.parametrize(
    ("arguments", "changes", "code"),
    few(
        [
            pytest.param(("--help",), {}, 0, id="done"),
            pytest.param(
                ("wait", "7", "--give-up-after", "0"), {"EVALBOARD_URL": "http://127.0.0.1:9"}, 4, id="failed"
            ),
            pytest.param(("wait", "999"), {}, 64, id="wrong use"),
        ],
        2,
    ),
)
def test_the_process_ends_with_the_code_of_its_command(
    started: Start, arguments: tuple[str, ...], changes: dict[str, str], code: int
) -> None:
    process = started(*arguments, **changes)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, bool(out), bool(err)) == (code, code == 0, code != 0)


def test_ctrl_c_leaves_the_run_going_and_says_how_to_come_back(started: Start) -> None:
    run = build.run()
    process = started("wait", str(run.pk))
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == f"Run {run.pk} goes on. Come back with: evalboard wait {run.pk}\n"
    run.refresh_from_db()
    assert (run.status, run.is_cancel_wanted) == ("queued", False)


def test_ctrl_c_while_the_command_loads_ends_it_without_a_traceback() -> None:
    code = """
import os, signal, sys
class Pressed:
    @staticmethod
    def find_spec(name, *about):
        if name == "evalboard.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressed)
from evalboard.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_a_run_that_is_not_there_is_64(evalboard: Call) -> None:
    done = evalboard("wait", "999")
    assert (done.returncode, done.stderr) == (64, "evalboard: There is no run 999.\n")


def test_a_server_that_does_not_answer_is_given_up_on(evalboard: Call) -> None:
    done = evalboard("wait", "7", "--give-up-after", "1", EVALBOARD_URL=f"http://127.0.0.1:{free_port()}")
    assert done.returncode == 4
    assert "Come back with: evalboard wait 7" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.nightly
def test_a_terminal_shows_a_bar_and_ci_shows_lines(environment: dict[str, str]) -> None:
    run = build.run(repeats=1)
    on_terminal = stderr_of_wait(run, {**environment, "CI": "", "TERM": "xterm"}, until="0/3")
    assert "━" in on_terminal
    assert "\x1b[" in on_terminal
    in_ci = stderr_of_wait(run, {**environment, "CI": "true", "TERM": "xterm"}, until="0 of 3")
    assert in_ci.startswith(f"run {run.pk}: queued, 0 of 3 responses")
    assert "\x1b[" not in in_ci


def stderr_of_wait(run: RunRecord, variables: dict[str, str], *, until: str) -> str:
    """What a person at a terminal sees who presses Ctrl-C once `until` is there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("wait", str(run.pk)),
        env=variables,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    while until.encode() not in seen:
        seen += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    with suppress(OSError):  # the other end is closed
        while True:
            seen += os.read(ours, 4096)
    os.close(ours)
    assert process.wait() == 130
    return seen.decode()
