"""Redis is killed, emptied, filled or gone, its messages lost or doubled: runs are accepted, found and finished."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models.functions import Now

from evalboard.celery import app
from runs.models import ResponseRecord, RunRecord, Shard, WorkerRecord
from runs.run import run_report
from runs.sweep import RING_AGAIN, reconcile
from runs.work import dispatch
from tests.faults.whole import assert_whole
from tests.servers import RedisServer
from tests.worker.conftest import Start, Wait, ended

pytestmark = pytest.mark.django_db(transaction=True)

NEVER = "3600"
QUEUE = dispatch.queue_of("default")


@pytest.fixture
def setup(redis: RedisServer, settings: Any) -> dict[str, str]:
    """Workers that never look by themselves once they have started: what they do, a ring made them do."""
    settings.REDIS_URL = redis.url
    return {"REDIS_URL": redis.url, "EVALBOARD_LOOK_SECONDS": NEVER}


@pytest.fixture
def idle_worker(start_worker: Start, wait_until: Wait, redis: RedisServer) -> Callable[..., None]:
    """Start a worker and wait until it listens: from then on only a ring makes it look."""

    def start(**environment: str) -> None:
        before = listeners(redis)
        start_worker(**environment)
        wait_until(lambda: listeners(redis) > before, "the worker listens")

    return start


def listeners(redis: RedisServer) -> int:
    """How many clients wait for a ring."""
    return redis.command("CLIENT", "LIST").count("cmd=brpop")


def n_rings() -> int:
    with app.connection_for_read(url=dispatch.settings.REDIS_URL) as connection:
        return dispatch._length(connection.default_channel, QUEUE)


def test_a_killed_redis_costs_the_run_at_work_nothing_and_the_next_ring_is_heard(
    new_run: Callable[..., RunRecord], idle_worker: Callable[..., None], wait_until: Wait, redis: RedisServer
) -> None:
    """R5: SIGKILL to Redis while a shard is at work; it comes back empty."""
    idle_worker(SCRIPTED_SECONDS="0.1")
    first = new_run(["say blue"] * 30, repeats=1)
    wait_until(lambda: ResponseRecord.objects.count() >= 3, "the ring was heard")
    redis.kill()
    at_the_kill = ResponseRecord.objects.count()
    accepted = new_run(["say blue"] * 3, repeats=1)
    [event] = accepted.events.filter(code="queue_delayed")
    assert "Redis does not answer" in event.text
    wait_until(lambda: ResponseRecord.objects.count() > at_the_kill + 3, "the shard at work goes on without Redis")
    redis.start()
    wait_until(lambda: ended(first) and ended(accepted), "both runs end: whoever works goes on to what waits")
    wait_until(lambda: listeners(redis) == 1, "the worker listens again")
    heard = new_run(["say blue"] * 3, repeats=1)
    wait_until(lambda: ended(heard), "the run ends, which only a ring can have told of")
    for run in (first, accepted, heard):
        assert_whole(run)


@pytest.mark.nightly
def test_a_worker_that_waited_out_the_outage_hears_the_doorbell_again(
    new_run: Callable[..., RunRecord], idle_worker: Callable[..., None], wait_until: Wait, redis: RedisServer
) -> None:
    """R7: Redis is stopped; what is asked for meanwhile is accepted, and rung for again once Redis is back."""
    idle_worker()
    redis.stop()
    run = new_run(["say blue"] * 3, repeats=1)
    assert run.status == RunRecord.Status.QUEUED
    assert run.events.filter(code="queue_delayed").count() == 1
    redis.start()
    wait_until(lambda: listeners(redis) == 1, "the worker listens again")
    assert not ResponseRecord.objects.exists()  # nobody has told it yet
    Shard.objects.update(next_at=Now() - RING_AGAIN)
    reconcile()
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)


@pytest.mark.nightly
def test_without_redis_queued_work_is_found_by_looking(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, redis: RedisServer
) -> None:
    """R7: Redis is away before the workers start and for the rest of the test."""
    redis.stop()
    start_worker(EVALBOARD_LOOK_SECONDS="1")
    wait_until(lambda: WorkerRecord.objects.exists(), "the worker has registered")
    runs = [new_run(["say blue"] * 15, repeats=2) for _ in range(2)]
    wait_until(lambda: all(map(ended, runs)), "the runs end")
    for run in runs:
        assert_whole(run)
        assert [event.code for event in run_report(run.pk).events if event.level == "warning"] == ["queue_delayed"]


@pytest.mark.nightly
def test_rings_lost_at_once_are_rung_again_by_the_sweep(
    new_run: Callable[..., RunRecord], idle_worker: Callable[..., None], wait_until: Wait, redis: RedisServer
) -> None:
    """R6, R12: FLUSHALL right after the rings were sent; shards that nobody claims in 30 s are rung for again."""
    run = new_run(["say blue"] * 36, repeats=2)
    assert n_rings() == 6
    redis.command("FLUSHALL")
    reconcile()
    assert n_rings() == 0  # they may still be on their way
    Shard.objects.update(next_at=Now() - RING_AGAIN)
    reconcile()
    reconcile()
    assert n_rings() == 6  # one for each shard that waits, however often it is swept
    idle_worker()
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)


@pytest.mark.nightly
def test_a_worker_sweeps_for_rings_that_were_never_sent(
    new_run: Callable[..., RunRecord], idle_worker: Callable[..., None], wait_until: Wait, settings: Any
) -> None:
    """R12: as above, with nobody but the worker itself to notice."""
    idle_worker(EVALBOARD_RECONCILE_SECONDS="1")
    settings.REDIS_URL = ""  # as a web server that dies between the commit and the ring
    run = new_run(["say blue"] * 3, repeats=1)
    Shard.objects.update(next_at=Now() - RING_AGAIN)
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)


@pytest.mark.nightly
def test_a_full_redis_takes_no_ring_and_fails_no_run(
    new_run: Callable[..., RunRecord], idle_worker: Callable[..., None], wait_until: Wait, redis: RedisServer
) -> None:
    """R6: `maxmemory` reached, every write refused with OOM."""
    idle_worker()
    redis.command("CONFIG", "SET", "maxmemory", "1")
    run = new_run(["say blue"] * 15, repeats=1)
    [event] = run.events.filter(code="queue_delayed")
    assert event.level == "warning"
    redis.command("CONFIG", "SET", "maxmemory", "0")
    Shard.objects.update(next_at=Now() - RING_AGAIN)
    reconcile()
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)


@pytest.mark.nightly
def test_the_same_ring_ten_times_is_one_claim(
    new_run: Callable[..., RunRecord], idle_worker: Callable[..., None], wait_until: Wait, redis: RedisServer
) -> None:
    """R11: duplicates, early and late, to two workers: one claim wins, the others find nothing."""
    for _ in range(2):
        idle_worker(SCRIPTED_SECONDS="0.05")
    run = new_run(["say blue"] * 12, repeats=1)  # one shard
    send(10)
    wait_until(lambda: ended(run), "the run ends")
    send(10)
    wait_until(lambda: n_rings() == 0, "the late ones were heard as well")
    assert_whole(run)
    assert Shard.objects.get(repeat__run=run).attempt == 1


@pytest.mark.nightly
def test_messages_of_another_version_are_left_alone_and_stop_nobody(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, redis: RedisServer, settings: Any
) -> None:
    """R21: a newer ring, an unknown task, an argument of tomorrow, bytes that are no message."""
    worker = start_worker(EVALBOARD_LOOK_SECONDS="4", EVALBOARD_RECONCILE_SECONDS=NEVER)
    wait_until(lambda: listeners(redis) == 1, "the worker listens")
    settings.REDIS_URL = ""
    unrung = new_run(["say blue"] * 3, repeats=1)
    settings.REDIS_URL = redis.url
    send(3, v=dispatch.VERSION + 1)
    send(1, name="evalboard.of_tomorrow")
    redis.command("LPUSH", f"evb:{QUEUE}", "garbage")
    wait_until(lambda: ended(unrung), "the run was found by looking")
    assert_whole(unrung)
    assert worker.poll() is None
    send(1, later="unknown")
    wait_until(lambda: n_rings() == 0, "every message was taken")
    heard = new_run(["say blue"] * 3, repeats=1)
    wait_until(lambda: ended(heard), "the worker works on")
    assert_whole(heard)


def send(n: int, name: str = dispatch.CLAIM, **more: Any) -> None:
    with app.connection_for_write(url=dispatch.settings.REDIS_URL) as connection:
        for _ in range(n):
            app.send_task(name, kwargs={"v": dispatch.VERSION, **more}, queue=QUEUE, connection=connection)
