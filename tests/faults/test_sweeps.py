"""Who sweeps: two schedulers, every worker, or nobody but a worker. However many do, each thing happens once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.db.models.functions import Now

from runs.models import Event, ResponseRecord, RunRecord, Shard, WorkerRecord
from runs.sweep import WAIT_BEFORE_SAYING_SO, reconcile
from runs.work import claim_shard, register_worker
from tests import build
from tests.faults.whole import assert_whole
from tests.processes import children_of, wait_for_end
from tests.servers import RedisServer
from tests.worker.conftest import Start, Wait, ended, kill_group

pytestmark = pytest.mark.django_db(transaction=True)

SWEEPERS = 4


def sweep_at_once() -> int:
    """Sweep from several connections at the same time; how many shards they took back together."""

    def sweep(_: int) -> int:
        try:
            return reconcile()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(SWEEPERS) as pool:
        return sum(pool.map(sweep, range(SWEEPERS)))


def test_sweeps_at_once_take_each_lost_shard_back_once(db: None) -> None:
    """R20: as many connections as there could be schedulers and workers."""
    build.suite(case_ids=[f"case-{n}" for n in range(96)])
    run = build.run(repeats=5)
    worker = build.worker()
    leases = [claim_shard(worker=worker) for _ in range(40)]
    assert all(leases)
    Shard.objects.filter(status="running").update(lease_until=Now() - timedelta(seconds=1))
    assert sweep_at_once() == 40
    assert run.events.filter(code="worker_lost").count() == 40
    assert set(Shard.objects.values_list("n_crashes", flat=True)) == {1}


@pytest.mark.nightly
def test_sweeps_at_once_say_what_waits_once(db: None) -> None:
    """R20: a line that is said once is said once, whoever is asked to say it."""
    build.suite()
    runs = [build.run() for _ in range(20)]
    RunRecord.objects.update(created_at=Now() - 2 * WAIT_BEFORE_SAYING_SO)
    Event.objects.update(at=Now() - 2 * WAIT_BEFORE_SAYING_SO)
    sweep_at_once()
    assert [run.events.filter(code="no_matching_worker").count() for run in runs] == [1] * len(runs)


@pytest.mark.nightly
@pytest.mark.parametrize("setup", ["team"], indirect=True)
def test_two_schedulers_and_three_workers_take_a_lost_shard_back_once(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, redis: RedisServer, settings: Any
) -> None:
    """R20: all of them as processes, sweeping every second."""
    settings.REDIS_URL = redis.url
    often = {"REDIS_URL": redis.url, "EVALBOARD_RECONCILE_SECONDS": "1"}
    for _ in range(2):
        start_worker("--scheduler", **often)
    run = new_run(["say blue"] * 24, repeats=1)
    killed = start_worker(SCRIPTED_SECONDS="1.0", **often)  # still at its shard when the others have started
    wait_until(lambda: ResponseRecord.objects.exists(), "the first worker serves")
    for _ in range(2):
        start_worker(SCRIPTED_SECONDS="0.1", **often)
    wait_until(lambda: WorkerRecord.objects.count() == 3, "the others have registered")
    kill_group(killed)
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)
    assert run.events.filter(code="worker_lost").count() == 1
    assert run.events.filter(code="attempt").count() == 1


@pytest.mark.nightly
@pytest.mark.parametrize("setup", ["team"], indirect=True)
def test_a_killed_schedulers_clock_ends_with_it(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, redis: RedisServer
) -> None:
    """The clock is a process that Celery forks off. That it is at work shows where an ended lease is taken back."""
    run = new_run(["say blue"] * 3, repeats=1)
    assert claim_shard(worker=build.worker())
    Shard.objects.update(lease_until=Now())
    scheduler = start_worker("--scheduler", REDIS_URL=redis.url, EVALBOARD_RECONCILE_SECONDS="1")
    wait_until(lambda: run.events.filter(code="worker_lost").exists(), "the clock has rung")
    clocks = children_of(scheduler.pid)
    assert clocks
    scheduler.kill()
    wait_for_end(*clocks)


def test_without_a_scheduler_a_worker_sweeps(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait
) -> None:
    """R26: what a dead worker of another host left is taken back by one that has nothing else to do."""
    gone = register_worker(name="gone", host="elsewhere", pid=1, pool="default", hardware={}, versions={})
    run = new_run(["say blue"] * 3, repeats=1)
    assert claim_shard(worker=gone)
    start_worker()
    wait_until(lambda: WorkerRecord.objects.count() == 2, "the worker has registered")
    assert not run.events.filter(code="worker_lost").exists()  # another host's worker may be alive for all it knows
    Shard.objects.update(lease_until=Now())
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)
    assert run.events.filter(code="worker_lost").count() == 1
