"""Workers as processes against the test database."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from evalboard.core.profile import DEFAULT_PROFILES
from tests.nursery import Nursery, Process
from tests.processes import command_of

ROOT = Path(__file__).resolve().parents[2]
LEASE_SECONDS = 3.0
PATIENCE_SECONDS = 600.0

WorkerProcess = subprocess.Popen[bytes] | Process
Start = Callable[..., WorkerProcess]
Wait = Callable[[Callable[[], object], str], None]


@pytest.fixture(params=["one machine", "team"])
def setup(request: pytest.FixtureRequest, settings: Any) -> dict[str, str]:
    """What a worker is told of the set-up it works in: on one machine nothing, in a team where the doorbell is."""
    if request.param == "one machine":
        return {"REDIS_URL": ""}
    redis = request.getfixturevalue("session_redis")
    redis.command("FLUSHALL")
    settings.REDIS_URL = redis.url  # the test itself rings: it stands where the web server does
    return {"REDIS_URL": redis.url, "EVALBOARD_LOOK_SECONDS": "5"}


@pytest.fixture(scope="session")
def scripted_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that runs the scripted host in place of the file it is given."""
    script = tmp_path_factory.mktemp("scripted") / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).parent / "scripted_host.py"} "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture
def processes() -> Iterator[list[WorkerProcess]]:
    """Every process that `start_worker` started; whatever still runs is killed at the end, engines too."""
    started: list[WorkerProcess] = []
    yield started
    for worker in started:
        kill_group(worker)


@pytest.fixture
def start_worker(
    database_url: str, scripted_python: Path, setup: dict[str, str], processes: list[WorkerProcess], nursery: Nursery
) -> Start:
    """Start `python -m worker OPTIONS`, by default on the scripted engine, in a process group of its own.

    Its interpreter is fresh where a PYTHONPATH is given, for Python itself reads that.
    """

    def start(*options: str, **environment: str) -> WorkerProcess:
        known = {
            "DATABASE_URL": database_url,
            "EVALBOARD_VLLM_PYTHON": str(scripted_python),
            "EVALBOARD_LEASE_SECONDS": str(LEASE_SECONDS),
            "EVALBOARD_HEARTBEAT_SECONDS": "0.5",
            "EVALBOARD_RESPONSE_SECONDS": "2",
            "EVALBOARD_START_PAUSE_SECONDS": "0.2",
            **setup,
        }
        variables = {**os.environ, **known, **environment}
        worker: WorkerProcess
        if "PYTHONPATH" in environment:
            command = [sys.executable, "-m", "worker", *options]
            worker = subprocess.Popen(command, cwd=ROOT, env=variables, process_group=0)
        else:
            worker = nursery.start("worker", *options, environment=variables)
        processes.append(worker)
        return worker

    return start


@pytest.fixture
def wait_until(processes: list[WorkerProcess]) -> Wait:
    """Wait until something has happened, or fail saying what has not; at once where a worker ended by itself."""

    def wait(happened: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            assert time.monotonic() < deadline, f"waited in vain until {what}"
            ended = [worker.returncode for worker in processes if (worker.poll() or 0) > 0]
            assert not ended, f"a worker ended with exit status {ended} before {what}"
            time.sleep(0.05)

    return wait


@pytest.fixture
def new_run(settings: Any) -> Callable[..., Any]:
    """Ask for a run of the given prompts; the right answer to each is "blue"."""
    from runs.catalogue import create_endpoint, create_profile
    from runs.models import Endpoint, Profile, Run
    from runs.run import create_run
    from runs.suites import push_suite

    path = str(settings.MODEL_ROOTS[0] / "scripted")

    def create(prompts: list[str], *, under: str = "pinned", **changes: Any) -> Run:
        cases = [{"id": f"case-{n}", "prompt": prompt, "target": "blue"} for n, prompt in enumerate(prompts)]
        suite = {"slug": "words", "title": "Words", "scorer": {"kind": "exact"}, "cases": cases}
        push_suite(document=suite)
        if not Endpoint.objects.exists():
            create_endpoint(slug="scripted", model_path=path, dtype="float32", line="scripted")
        if not Profile.objects.filter(slug=under).exists():
            create_profile(slug=under, title="", settings=DEFAULT_PROFILES[under]["settings"])
        return create_run(**{"suite": "words", "endpoint": "scripted", "profile": under, **changes})

    return create


def ended(run: Any) -> bool:
    run.refresh_from_db()
    return bool(run.is_terminal)


def engines(worker: WorkerProcess) -> list[psutil.Process]:
    """The engine processes that this worker has now."""
    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(worker.pid).children(recursive=True)
        return [each for each in started if "scripted_host.py" in command_of(each)]
    return []


def kill_group(worker: WorkerProcess) -> None:
    """SIGKILL to the worker and whatever shares its group, as a machine's end would; its engines have groups."""
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
