"""Seeded chaos: workers and Redis are killed, stopped, emptied and told nonsense; every response comes once.

Which faults come in which order follows from the seed alone. `make test` always has the same one, `make soak` another
each time, which is printed; EVALBOARD_CHAOS_SEED names one.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from evalboard.celery import app
from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile
from runs.models import ResponseRecord, RunRecord, Shard
from runs.work import dispatch
from tests.faults.whole import assert_once
from tests.servers import RedisServer
from tests.worker.conftest import Start, Wait, WorkerProcess, ended, kill_group

pytestmark = [pytest.mark.chaos, pytest.mark.django_db(transaction=True)]

GATE_SEED = 20261122
N_CASES, N_REPEATS, N_SHARDS = 240, 5, 60
N_WORKERS = 3
N_FAULTS = 16
FAULT_SECONDS = 1.5  # from one fault to the next, at most
LEASE = {"EVALBOARD_LEASE_SECONDS": "3", "EVALBOARD_HEARTBEAT_SECONDS": "0.5", "EVALBOARD_RECONCILE_SECONDS": "1"}


class Chaos:
    """A team of workers and everything that happens to it."""

    def __init__(self, seed: int, start: Start, redis: RedisServer | None) -> None:
        self.random = random.Random(seed)
        self.n_killed = 0
        self._start = start
        self._redis = redis
        self._workers: list[WorkerProcess] = []
        self._stopped: set[WorkerProcess] = set()

    def keep_working(self) -> None:
        """Start workers in place of those that were killed."""
        self._workers = [worker for worker in self._workers if worker.poll() is None]
        while len(self._workers) < N_WORKERS:
            self._workers.append(self._start(SCRIPTED_SECONDS="0.02", EVALBOARD_LOOK_SECONDS="2", **LEASE))

    def strike(self) -> str:
        """One fault; its name."""
        faults: list[Callable[[], None]] = [self.kill, self.kill, self.stop, self.wake]
        if self._redis is not None:
            faults += [self.empty_redis, self.restart_redis, self.ring_again, self.talk_nonsense]
        fault = self.random.choice(faults)
        fault()
        return fault.__name__

    def kill(self) -> None:
        """One that is at work, where there is one."""
        at_work = set(Shard.objects.filter(status="running").values_list("owner__pid", flat=True))
        victim = self.random.choice([each for each in self._workers if each.pid in at_work] or self._workers)
        self._stopped.discard(victim)
        kill_group(victim)
        self.n_killed += 1

    def stop(self) -> None:
        awake = [worker for worker in self._workers if worker not in self._stopped]
        if len(awake) > 1:
            victim = self.random.choice(awake)
            os.killpg(victim.pid, signal.SIGSTOP)
            self._stopped.add(victim)

    def wake(self) -> None:
        """The oldest sleeper, which may have slept through its lease."""
        for worker in [each for each in self._workers if each in self._stopped][:1]:
            os.killpg(worker.pid, signal.SIGCONT)
            self._stopped.discard(worker)

    def wake_all(self) -> None:
        while self._stopped & set(self._workers):
            self.wake()

    def empty_redis(self) -> None:
        self._command("FLUSHALL")

    def restart_redis(self) -> None:
        if self._redis is not None:
            self._redis.kill()
            self._redis.start()

    def ring_again(self) -> None:
        """Every message ten times."""
        with app.connection_for_write(url=dispatch.settings.REDIS_URL) as connection:
            for _ in range(10):
                queue = dispatch.queue_of("default")
                app.send_task(dispatch.CLAIM, kwargs={"v": dispatch.VERSION}, queue=queue, connection=connection)

    def talk_nonsense(self) -> None:
        self._command("LPUSH", f"evb:{dispatch.queue_of('default')}", "nonsense")

    def _command(self, *words: str) -> None:
        if self._redis is not None:
            self._redis.command(*words)


def choose_seed() -> int:
    if given := os.environ.get("EVALBOARD_CHAOS_SEED"):
        return int(given)
    return random.SystemRandom().randrange(10**6) if os.environ.get("EVALBOARD_SOAK") else GATE_SEED


@pytest.fixture
def setup(request: pytest.FixtureRequest, settings: Any) -> dict[str, str]:
    if request.param == "one machine":
        return {"REDIS_URL": ""}
    settings.REDIS_URL = request.getfixturevalue("redis").url
    return {"REDIS_URL": settings.REDIS_URL}


@pytest.mark.nightly
@pytest.mark.parametrize("setup", ["team", pytest.param("one machine", marks=pytest.mark.nightly)], indirect=True)
def test_whatever_happens_every_response_comes_once(
    new_run: Callable[..., RunRecord],
    start_worker: Start,
    wait_until: Wait,
    request: pytest.FixtureRequest,
    setup: dict[str, str],
) -> None:
    """R1, R5, R6, R10, R11, R12 and R21 at random, on a run of 60 shards and 1,200 responses."""
    seed = choose_seed()
    print(f"EVALBOARD_CHAOS_SEED={seed} repeats this")
    chaos = Chaos(seed, start_worker, request.getfixturevalue("redis") if setup["REDIS_URL"] else None)
    fixed = DEFAULT_PROFILES["fixed"]["settings"] | {"group_size": 20}
    create_profile(slug="fixed-20", title="", settings=fixed)
    run = new_run(["say blue"] * N_CASES, repeats=N_REPEATS, under="fixed-20")
    assert Shard.objects.count() == N_SHARDS
    chaos.keep_working()
    wait_until(lambda: ResponseRecord.objects.exists(), "the first response is stored")
    began = time.monotonic()
    for number in range(N_FAULTS):
        pause = chaos.random.uniform(0.1, FAULT_SECONDS)
        struck_at = time.monotonic()
        wait_until(lambda at=struck_at, pause=pause: time.monotonic() > at + pause, "the next fault")  # type: ignore[misc]
        if ended(run):
            break
        print(f"{time.monotonic() - began:5.1f} s, fault {number + 1}: {chaos.strike()}")
        chaos.keep_working()
    chaos.wake_all()
    wait_until(lambda: ended(run), "the run ends")
    print(f"{time.monotonic() - began:5.1f} s: the run has {run.status}, {chaos.n_killed} workers were killed")
    assert_once(run)
    assert ResponseRecord.objects.count() == N_CASES * N_REPEATS
    assert set(Shard.objects.values_list("status", flat=True)) == {Shard.Status.FINISHED}
    # A case that was in flight, alone, when a shard's worker died for the third time is honestly missing.
    missing = ResponseRecord.objects.exclude(error_code="")
    assert set(missing.values_list("error_code", flat=True)) <= {"worker_crash"}
    assert not missing.exclude(repeat__shards__n_crashes__gte=3).exists()
    assert run.status == ("incomplete" if missing.exists() else "finished")
    told = run.events.filter(code__in=("worker_lost", "shard_released")).exclude(level="info").count()
    assert told == sum(Shard.objects.values_list("n_crashes", flat=True))
    assert told > 0, "nothing was lost: the faults missed"
