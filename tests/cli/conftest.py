"""The command as a process of its own, against a server that is really there."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import build

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30


@pytest.fixture
def secret(transactional_db: None) -> str:
    return build.token(build.user("ci", "engineer"), "read", "run")


@pytest.fixture
def environment(live_server: Any, secret: str, tmp_path: Path) -> dict[str, str]:
    """What the command reads; no variable of whoever runs the tests among it, nor of the CI that runs them."""
    foreign = ("EVALBOARD_", "GITHUB_", "GITLAB_", "CI_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {
        **kept,
        "EVALBOARD_URL": live_server.url,
        "EVALBOARD_TOKEN": secret,
        "EVALBOARD_DATA_DIR": str(tmp_path),
        "CI": "true",
        "COLUMNS": "200",
    }


@pytest.fixture
def evalboard(environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command to its end; `changes` are variables set, or with None unset."""

    def call(*arguments: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
        variables = {name: value for name, value in {**environment, **changes}.items() if value is not None}
        return subprocess.run(
            command(*arguments), env=variables, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    return call


@pytest.fixture
def started(environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the command and go on; it is ended with the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **changes: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command(*arguments),
            env={**environment, **changes},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hears_ctrl_c,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def hears_ctrl_c() -> None:
    """In a child: as from a terminal. What a shell starts in the background ignores SIGINT, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "evalboard", *arguments]
