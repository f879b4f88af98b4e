"""Workers as processes against the test database."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEASE_SECONDS = 3.0
PATIENCE_SECONDS = 180.0

WorkerProcess = subprocess.Popen[bytes]


@pytest.fixture
def start_worker(database_url: str, tmp_path: Path) -> Iterator[Callable[..., WorkerProcess]]:
    """Start `python -m worker`, by default on the scripted engine; whatever still runs is killed at the end."""
    started: list[WorkerProcess] = []

    def start(**environment: str) -> WorkerProcess:
        known = {
            "DATABASE_URL": database_url,
            "EVALBOARD_VLLM_PYTHON": str(scripted_python(tmp_path)),
            "EVALBOARD_LEASE_SECONDS": str(LEASE_SECONDS),
            "EVALBOARD_HEARTBEAT_SECONDS": "0.5",
            "EVALBOARD_RESPONSE_SECONDS": "2",
        }
        worker = subprocess.Popen(
            [sys.executable, "-m", "worker"], cwd=ROOT, env={**os.environ, **known, **environment}
        )
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.kill()
        worker.wait()


@pytest.fixture
def wait_until() -> Callable[[Callable[[], object], str], None]:
    """Wait until something has happened, or fail saying what has not."""

    def wait(happened: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            assert time.monotonic() < deadline, f"waited in vain until {what}"
            time.sleep(0.05)

    return wait


def scripted_python(folder: Path) -> Path:
    """An interpreter that runs the scripted host in place of the file it is given."""
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).parent / "scripted_host.py"} "$@"\n')
    script.chmod(0o755)
    return script
