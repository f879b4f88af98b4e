"""Workers for tests: in the test's own process, one step at a time, or as processes where those are the subject.

A worker in this process (`join_worker`, `work_until`) claims, decodes and records as every worker does; nothing runs
beside the test, so nothing is waited for. Worker processes (`start_worker`, `wait_until`) are for kills, signals and
the doorbell. Both drive the scripted engine, a child process that speaks vLLM's side of the wire.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.profile import DEFAULT_PROFILES
from runs.sweep import reconcile
from tests import processes as running
from tests.nursery import Nursery, Process
from tests.waiting import wait_until as wait_for
from tests.worker.engine_cases import Running, make_plan
from worker.engines.base import EngineSpec, Started
from worker.engines.vllm import VllmEngine
from worker.runner import Runner

ROOT = Path(__file__).resolve().parents[2]
LEASE_SECONDS = 3.0

WorkerProcess = subprocess.Popen[bytes] | Process
Start = Callable[..., WorkerProcess]
Wait = Callable[[Callable[[], object], str], None]
Join = Callable[..., "WorkerHere"]
Step = Callable[["WorkerHere"], object]


# What a worker does is the same in both set-ups; how it hears of work is what tests/faults/test_redis.py is about.
@pytest.fixture(params=["one machine", pytest.param("team", marks=pytest.mark.nightly)])
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
    """Wait until something has happened, or fail at once where a worker ended by itself."""

    def wait(happened: Callable[[], object], what: str) -> None:
        def is_over() -> object:
            ended = [worker.returncode for worker in processes if (worker.poll() or 0) > 0]
            assert not ended, f"a worker ended with exit status {ended} before {what}"
            return happened()

        wait_for(is_over)

    return wait


class ScriptedEngine(VllmEngine):
    """The driver of vLLM with the scripted host behind it, which does what the variables say."""

    def __init__(
        self,
        spec: EngineSpec,
        *,
        python: Path,
        script: Mapping[str, str],
        response_seconds: float,
        on_answer: Callable[[], object],
    ) -> None:
        """on_answer: called after each answer, before the worker has it."""
        super().__init__(spec, python=python, response_seconds=response_seconds)
        self._script, self._on_answer = script, on_answer

    def start(self) -> Started:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self._script.items():
                patch.setenv(name, value)
            return super().start()

    def _receive(self, kind: str | None = None, *, deadline: float | None = None) -> dict[str, Any]:
        event = super()._receive(kind, deadline=deadline)
        if event["event"] in ("response", "forced"):
            self._on_answer()
        return event


class WorkerHere(Runner):
    """A worker that works when it is told to, in the thread that tells it."""

    def __init__(self, python: Path, script: Mapping[str, str], response_seconds: float, on_answer: Step) -> None:
        self.n_answers = 0
        self.engines: list[ScriptedEngine] = []
        self._python, self._script = python, script
        self._response_seconds, self._on_answer = response_seconds, on_answer
        hardware = {"kind": "cpu", "cpu": "scripted", "n_cores": 1, "versions": {"vllm": "0"}}
        super().__init__(pool="default", hardware=hardware, make_engine=self._make_engine)

    def leave(self) -> None:
        leave(self)

    def _make_engine(self, spec: EngineSpec) -> ScriptedEngine:
        engine = ScriptedEngine(
            spec,
            python=self._python,
            script=self._script,
            response_seconds=self._response_seconds,
            on_answer=self._count_answer,
        )
        self.engines.append(engine)
        return engine

    def _count_answer(self) -> None:
        self.n_answers += 1
        self._on_answer(self)


def leave(worker: Runner) -> None:
    """Let its engine go and leave the pool, as at the end of the process."""
    worker.stop()
    worker.run_forever()


@pytest.fixture
def workers_here(db: None, settings: Any) -> Iterator[list[Runner]]:
    """Those of this process; at the end of the test they leave.

    A lease is renewed on another connection, which does not see a test's rows and would take it for lost.
    """
    settings.HEARTBEAT_SECONDS, settings.LEASE_SECONDS = 1200.0, 3600.0
    joined: list[Runner] = []
    yield joined
    for worker in joined:
        if not worker.is_stopping:
            leave(worker)


@pytest.fixture
def join_worker(scripted_python: Path, settings: Any, workers_here: list[Runner]) -> Join:
    """Have a worker in this process join the pool; its scripted engine does what the variables say.

    on_answer is called with the worker after each of its engine's answers, which it does not have yet.
    """
    settings.START_PAUSE_SECONDS = 0.0

    def join(*, response_seconds: float = 600.0, on_answer: Step = lambda worker: None, **script: str) -> WorkerHere:
        worker = WorkerHere(scripted_python, script, response_seconds, on_answer)
        workers_here.append(worker)
        return worker

    return join


@pytest.fixture
def work_until(workers_here: list[Runner]) -> Wait:
    """Let the workers of this process work in turn, a row each, until something has happened.

    Fail where nothing is left to do: two sweeps in a row bring nobody any work.
    """

    def work(happened: Callable[[], object], what: str) -> None:
        n_sweeps = 0
        while not happened():
            at_work = [worker for worker in workers_here if not worker.is_stopping]
            if sum(worker.claim_and_run() for worker in at_work):  # each of them, and not the first that has work
                n_sweeps = 0
                continue
            assert n_sweeps < 2, f"nobody has anything left to do before {what}"
            for worker in at_work:
                worker.work()  # which is more than rows: comparisons and strays
            reconcile()
            n_sweeps += 1

    return work


@pytest.fixture
def new_run(settings: Any) -> Callable[..., Any]:
    """Ask for a run of the given prompts; the right answer to each is "blue"."""
    from runs.catalogue import create_endpoint, create_profile
    from runs.models import EndpointRecord, ProfileRecord, RunRecord
    from runs.run import create_run
    from runs.suites import push_suite

    path = str(settings.MODEL_ROOTS[0] / "scripted")

    def create(prompts: list[str], *, under: str = "pinned", **changes: Any) -> RunRecord:
        cases = [{"id": f"case-{n}", "prompt": prompt, "target": "blue"} for n, prompt in enumerate(prompts)]
        suite = {"slug": "words", "title": "Words", "scorer": {"kind": "exact"}, "cases": cases}
        push_suite(document=suite)
        if not EndpointRecord.objects.exists():
            create_endpoint(slug="scripted", model_path=path, dtype="float32", line="scripted")
        if not ProfileRecord.objects.filter(slug=under).exists():
            create_profile(slug=under, title="", settings=DEFAULT_PROFILES[under]["settings"])
        return create_run(**{"suite": "words", "endpoint": "scripted", "profile": under, **changes})

    return create


@pytest.fixture(scope="session")
def pinned(vllm_python: Path, sample_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """An engine under `pinned` for all, with no compiler on PATH: nothing but the two programs that vLLM calls."""
    programs = tmp_path_factory.mktemp("programs")
    for name in ("lscpu", "sh"):
        (programs / name).symlink_to(shutil.which(name) or pytest.fail(f"{name} is not on PATH"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(programs))
        patch.setenv("DATABASE_URL", "postgres://not-for-engines")
        started = Running(vllm_python, sample_model, make_plan())
    yield started
    started.engine.stop()


def stop_after(n: int) -> Step:
    """Tell a worker to stop, as SIGTERM does, when its engine gives the nth answer."""

    def look(worker: WorkerHere) -> None:
        if worker.n_answers == n:
            worker.stop()

    return look


def ended(run: Any) -> bool:
    run.refresh_from_db()
    return bool(run.is_terminal)


def engines(worker: WorkerProcess) -> list[running.Process]:
    """The engine processes that this worker has now."""
    return running.descendants_of(worker.pid, "scripted_host.py")


def kill_engine(engine: VllmEngine) -> None:
    """End an engine as the kernel does that has no memory left; who drives it finds out by itself."""
    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGKILL)


def kill_group(worker: WorkerProcess) -> None:
    """SIGKILL to the worker and whatever shares its group, as a machine's end would; its engines have groups."""
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
