"""A team's set-up: two workers against one, and how soon a run is claimed with the doorbell and without."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from django.conf import settings
from django.contrib.auth import get_user_model

from bench import bench_run
from bench.row import Row, median_row
from evalboard.local.up import KEEP_ALIVE_SECONDS
from runs.access import create_token
from runs.models import Case, EngineProcess, ResponseRecord, RunRecord, WorkerRecord
from runs.run import create_run
from runs.suites import push_suite
from tests.servers import RedisServer, free_port

ROOT = Path(__file__).resolve().parents[1]
LOG = ROOT / "bench" / "results" / "workers.log"
COPIES = 3  # of the sample suite's 30 cases: enough shards for two workers to share evenly
DELAYS_UP, DELAYS_DOWN = 10, 5
PATIENCE_SECONDS = 600.0
ROUNDS = 3


def measure() -> list[Row]:
    """Both measurements, on real engines and a Redis of their own."""
    bench_run.prepare()
    if not RedisServer.is_installed():
        print("No redis-server on PATH: the team's set-up is not measured.")
        return []
    with tempfile.TemporaryDirectory(prefix="evalboard-bench-redis-") as folder:
        redis = RedisServer(Path(folder))
        redis.start()
        settings.REDIS_URL = os.environ["REDIS_URL"] = redis.url
        try:
            return _two_against_one() + _delays(redis)
        finally:
            redis.stop()
            settings.REDIS_URL = os.environ["REDIS_URL"] = ""


def _two_against_one() -> list[Row]:
    """Time of one repeat by one worker and by two, each worker on one core of its own, engines warm, in turn."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        print("One core only: two workers are not measured.")
        return []
    _push_long_suite()
    pairs = []
    for _ in range(ROUNDS):
        pairs.append((_timed_run(cores[:1]), _timed_run(cores)))
    ratios = [two.seconds / one.seconds for one, two in pairs]
    same = {run.traces == pairs[0][0].traces for pair in pairs for run in pair}
    n_cases = len(pairs[0][0].traces)
    return [
        median_row(f"{n_cases} cases by one worker on one core", [one.seconds for one, _ in pairs], "s"),
        median_row("the same by two workers, one core each", [two.seconds for _, two in pairs], "s"),
        median_row("two workers against one", ratios, "ratio", aim="about 0.5"),
        Row("all of their traces equal, byte for byte", str(same == {True}), aim="True"),
    ]


def _delays(redis: RedisServer) -> list[Row]:
    """Seconds from sending POST /runs/ to the first claim, by an idle worker."""
    one = {"id": "one", "prompt": "Say blue.", "target": "blue"}
    suite = {"slug": "bench-one", "title": "One", "max_tokens": 4, "scorer": {"kind": "exact"}, "cases": [one]}
    push_suite(document=suite)
    with _web() as post, _workers([None]):
        post()  # starts the engine
        up = [post() for _ in range(DELAYS_UP)]
        redis.kill()
        down = [post() for _ in range(DELAYS_DOWN)]
    return [
        median_row("POST /runs/ to first claim, Redis up", up, "s", aim="≤ 1"),
        median_row("POST /runs/ to first claim, Redis down", down, "s", aim="≤ 30"),
    ]


class _Timed:
    """A run that has ended: how long its decoding took, and the digest of each case's trace."""

    def __init__(self, run: RunRecord, seconds: float) -> None:
        self.seconds = seconds
        rows = ResponseRecord.objects.filter(repeat__run=run).values_list("case_index", "trace_digest")
        self.traces = {index: bytes(digest) for index, digest in rows}


def _timed_run(cores: Sequence[int]) -> _Timed:
    with _workers(cores):
        _wait_for_end(_new_run("bench-long"))  # starts the engines of all
        _wait(lambda: EngineProcess.objects.filter(stopped_at=None).count() == len(cores), "engines are warm")
        began = time.perf_counter()
        run = _new_run("bench-long")
        _wait_for_end(run)
        return _Timed(run, time.perf_counter() - began)


def _new_run(suite: str) -> RunRecord:
    return create_run(suite=suite, endpoint="sample-float32", profile="pinned", repeats=1)


def _push_long_suite() -> None:
    sample = Case.objects.filter(suite_version__suite__slug="sample").order_by("index")
    asked = [(case.case_id, {**case.content, "target": "blue"}) for case in sample]  # nobody looks at the scores
    cases = [{**content, "id": f"{case_id}-{copy}"} for copy in range(COPIES) for case_id, content in asked]
    document = {"slug": "bench-long", "title": "Long", "max_tokens": 48, "scorer": {"kind": "exact"}, "cases": cases}
    push_suite(document=document)


@contextmanager
def _workers(cores: Sequence[int | None]) -> Iterator[None]:
    """`evalboard worker` as processes, each on one core, or on all where it is None."""
    started = [_start_worker(core) for core in cores]
    try:
        _wait(lambda: WorkerRecord.objects.filter(stopped_at=None).count() == len(cores), "the workers are there")
        yield
    finally:
        for each in started:
            each.terminate()
        for each in started:
            each.wait(timeout=60)


def _start_worker(core: int | None) -> subprocess.Popen[bytes]:
    pinned = [] if core is None else ["taskset", "--cpu-list", str(core)]
    command = [*pinned, sys.executable, "-m", "worker"]
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)


@contextmanager
def _web() -> Iterator[Callable[[], float]]:
    """The web server, and a function that posts a run and says how many seconds later it was claimed."""
    user = get_user_model().objects.create_superuser("bench")
    until = datetime.now(UTC) + timedelta(hours=1)
    token = create_token(user=user, name="bench", scopes=("run", "read"), expires_at=until)[1]
    address = f"http://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "gunicorn", "evalboard.wsgi", "--bind", address.removeprefix("http://")]
    command += ["--worker-class", "gthread", "--threads", "4", "--no-control-socket", "--log-level", "error"]
    command += ["--keep-alive", str(KEEP_ALIVE_SECONDS)]
    server = subprocess.Popen(command, cwd=ROOT)
    client = httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=30, trust_env=False)

    def post() -> float:
        began = datetime.now(UTC)
        body = {"suite": "bench-one", "endpoint": "sample-float32", "profile": "pinned", "repeats": 1}
        made = client.post("/api/v1/runs/", json=body).raise_for_status().json()
        run = RunRecord.objects.get(pk=made["id"])
        _wait_for_end(run)
        assert run.started_at is not None
        return (run.started_at - began).total_seconds()

    def answers() -> bool:
        try:
            return client.get("/api/v1/health").is_success
        except httpx.TransportError:
            return False

    try:
        _wait(answers, "the page answers")
        yield post
    finally:
        server.terminate()
        server.wait()


def _wait_for_end(run: RunRecord) -> None:
    def ended() -> bool:
        run.refresh_from_db()
        return run.is_terminal

    _wait(ended, f"run {run.pk} ends")
    if run.status != RunRecord.Status.FINISHED:
        raise RuntimeError(f"The measured run ended as {run.status}: {run.failure}")


def _wait(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"Waited in vain until {what}; {LOG} may say why.")
        time.sleep(0.02)
