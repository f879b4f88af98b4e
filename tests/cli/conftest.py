"""The command against a server that is really there: in this process, or in one of its own where a test is of that."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from evalboard.cli.errors import FAULT
from evalboard.cli.main import main
from evalboard.client import waiting
from tests import build
from tests.worker.conftest import scripted_python

__all__ = ["scripted_python"]

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120
FOREIGN = ("EVALBOARD_", "GITHUB_", "GITLAB_", "CI_")  # variables of whoever runs the tests, or of the CI that does
LOOK_SECONDS = 0.05  # between two looks at what is waited for, in place of half a second and more

# Words, and what happens once they stand on stderr.
Step = tuple[str, Callable[[], object]]


@pytest.fixture
def secret(transactional_db: None) -> str:
    return build.token(build.user("ci", "engineer"), "read", "run")


@pytest.fixture
def variables(live_server: Any, secret: str, tmp_path: Path) -> dict[str, str]:
    """What the tests set of a command's environment."""
    return {
        "EVALBOARD_URL": live_server.url,
        "EVALBOARD_TOKEN": secret,
        "EVALBOARD_DATA_DIR": str(tmp_path),
        "CI": "true",
        "COLUMNS": "200",
        # As in a virtualenv that is active, where hints say `evalboard`.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }


@pytest.fixture
def environment(variables: dict[str, str]) -> dict[str, str]:
    """The whole environment, for a process of its own."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**ours, **variables}


class Watched(io.StringIO):
    """The stderr of a command: each step is taken once its words are written, one after the other."""

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__()
        self.steps = list(steps)

    def write(self, text: str) -> int:
        n_written = super().write(text)
        if self.steps and self.steps[0][0] in text:
            _, take = self.steps.pop(0)
            take()
        return n_written


@pytest.fixture
def evalboard(variables: dict[str, str]) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run the command to its end; `changes` are variables set, or with None unset.

    `meanwhile` are steps, for what changes on the server while the command waits.
    """

    def call(*arguments: str, meanwhile: Sequence[Step] = (), **changes: str | None) -> Any:
        out, err = io.StringIO(), Watched(meanwhile)
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err), _deadline():
            for name in [name for name in os.environ if name.startswith(FOREIGN)]:
                patch.delenv(name)
            for name, value in {**variables, **changes}.items():
                patch.delenv(name, raising=False) if value is None else patch.setenv(name, value)
            patch.setattr(sys, "argv", ["evalboard", *arguments])
            patch.setattr(waiting, "LOOK_SECONDS", LOOK_SECONDS)
            with pytest.raises(SystemExit) as ended:
                main()
        assert ended.value.code != FAULT, err.getvalue()
        assert not err.steps, f"{err.steps[0][0]!r} never stood on stderr:\n{err.getvalue()}"
        return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), out.getvalue(), err.getvalue())

    return call


@contextmanager
def _deadline() -> Iterator[None]:
    """End a command that would wait for ever."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"The command has not ended within {SECONDS} s.")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def ctrl_c() -> None:
    """A step: somebody at the terminal presses it."""
    raise KeyboardInterrupt


@pytest.fixture
def started(environment: dict[str, str]) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start the command as a process and go on; it is ended with the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **changes: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            command(*arguments),
            env={**environment, **changes},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "evalboard", *arguments]
