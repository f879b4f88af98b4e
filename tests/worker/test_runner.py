"""Workers at work, some killed and stopped in the middle of it: nothing is lost, nothing is doubled."""

import itertools
import signal
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.db.models.functions import Now

from runs.models import BucketRecord, EngineProcess, ResponseRecord, RunRecord, Shard, WorkerRecord
from runs.run import cancel_run
from tests.processes import wait_for_end
from tests.worker.conftest import Join, Start, Wait, WorkerHere, ended, engines
from worker import runner

pytestmark = pytest.mark.django_db
as_processes = pytest.mark.django_db(transaction=True)


@as_processes
def test_a_worker_killed_mid_run_loses_nothing_and_doubles_nothing(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait
) -> None:
    run = new_run(["say blue"] * 20, repeats=2)
    first = start_worker(SCRIPTED_SECONDS="0.3")  # so that it dies within a shard, however late it is seen
    wait_until(lambda: ResponseRecord.objects.count() >= 5, "five responses are stored")
    left = engines(first)
    first.kill()
    kept = set(ResponseRecord.objects.values_list("id", flat=True))
    start_worker(SCRIPTED_SECONDS="0.01")
    wait_until(lambda: ended(run), "the run ends")
    assert run.status == "finished"
    assert kept <= set(ResponseRecord.objects.values_list("id", flat=True))
    keys = list(ResponseRecord.objects.values_list("repeat__index", "case_index"))
    assert sorted(keys) == [(repeat, case) for repeat in (1, 2) for case in range(20)]
    shards = Shard.objects.filter(repeat__run=run)
    assert sum(shards.values_list("n_done", flat=True)) == 40
    assert max(shards.values_list("attempt", flat=True)) == 2
    assert run.events.filter(code="worker_lost").exists()
    assert left
    wait_for_end(*left)  # the killed worker's engine has died with it


@as_processes
def test_a_worker_that_slept_through_its_lease_writes_nothing_afterwards(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, join_worker: Join, work_until: Wait
) -> None:
    run = new_run(["say blue"] * 20, repeats=1)
    zombie = start_worker(SCRIPTED_SECONDS="0.1")
    wait_until(lambda: ResponseRecord.objects.count() >= 3, "three responses are stored")
    sleeper = WorkerRecord.objects.get()
    zombie.send_signal(signal.SIGSTOP)
    Shard.objects.filter(owner=sleeper).update(lease_until=Now())
    join_worker()
    work_until(lambda: ended(run), "the run ends")
    before = set(ResponseRecord.objects.values_list("id", "attempt", "text"))
    zombie.send_signal(signal.SIGCONT)
    wait_until(lambda: WorkerRecord.objects.filter(pk=sleeper.pk, n_fenced=1).exists(), "the zombie was refused")
    assert set(ResponseRecord.objects.values_list("id", "attempt", "text")) == before
    assert len(before) == 20


def test_a_prompt_that_kills_its_engine_is_isolated_and_the_rest_goes_on(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    run = new_run(["say blue"] * 5 + ["die now"] + ["say blue"] * 5, repeats=1)
    join_worker()
    work_until(lambda: ended(run), "the run ends")
    assert run.status == "incomplete"
    missing = ResponseRecord.objects.exclude(error_code="").get()
    assert (missing.case_index, missing.error_code) == (5, "engine_error")
    assert "killed by its prompt" in missing.error_detail
    assert ResponseRecord.objects.filter(text="blue").count() == 10


def test_a_prompt_that_hangs_its_engine_ends_as_a_timeout(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    run = new_run(["say blue", "hang here", "say blue"], repeats=1)
    join_worker(response_seconds=1.0)
    work_until(lambda: ended(run), "the run ends")
    missing = ResponseRecord.objects.exclude(error_code="").get()
    assert (missing.case_index, missing.error_code) == (1, "timeout")
    assert ResponseRecord.objects.filter(text="blue").count() == 2


@as_processes
def test_a_run_is_cancelled_with_the_next_heartbeat(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait, settings: Any
) -> None:
    """The heartbeat has a thread and a connection of its own; the engine is not asked for what is left of the shard."""
    settings.HEARTBEAT_SECONDS = 0.05
    run = new_run(["say blue"] * 12, repeats=1)  # one shard
    is_seen = threading.Event()

    def cancel(worker: WorkerHere) -> None:
        if worker.n_answers == 2:
            abort = worker.engines[0].abort
            worker.engines[0].abort = lambda: (abort(), is_seen.set())  # type: ignore[func-returns-value, method-assign]
            cancel_run(run_id=run.pk)
            is_seen.wait()

    worker = join_worker(on_answer=cancel)
    work_until(lambda: ended(run), "the run ends")
    assert run.status == "cancelled"
    assert worker.n_answers < 12


@as_processes
def test_a_worker_that_is_told_to_stop_hands_its_shard_back(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait
) -> None:
    new_run(["say blue"] * 50, repeats=1)
    worker = start_worker(SCRIPTED_SECONDS="0.2")
    wait_until(lambda: ResponseRecord.objects.exists(), "a response is stored")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert not Shard.objects.filter(status="running").exists()
    assert Shard.objects.filter(n_crashes__gt=0).count() == 0
    assert WorkerRecord.objects.exclude(stopped_at=None).count() == 1


@pytest.mark.nightly
@as_processes
def test_a_worker_that_is_told_to_stop_while_it_starts_stops(start_worker: Start, wait_until: Wait) -> None:
    """At any moment once it is registered, while Celery still starts as well; at first the signal itself ends it."""
    workers = []
    for number, pause in enumerate((0.0, 0.03, 0.1, 0.3), start=1):
        workers.append(start_worker())
        wait_until(lambda n=number: WorkerRecord.objects.count() == n, "the worker has registered")  # type: ignore[misc]
        time.sleep(pause)  # where in its start it is told, not something that is waited for
        workers[-1].send_signal(signal.SIGTERM)
    assert {worker.wait() for worker in workers} <= {0, -signal.SIGTERM}


def test_the_halves_of_a_run_come_from_engine_processes_of_their_own(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    run = new_run(["say blue"] * 3, repeats=5)
    join_worker()
    work_until(lambda: ended(run), "the run ends")
    served = {
        process.pk: set(process.responses.values_list("repeat__index", flat=True))
        for process in EngineProcess.objects.all()
    }
    assert sorted(map(sorted, served.values())) == [[1, 2, 3], [4, 5]]
    first, second = EngineProcess.objects.order_by("id")
    assert [check["same"] for check in first.self_checks] == [True, True]
    assert second.self_checks[0]["digest"] == first.self_checks[0]["digest"]


def test_a_worker_with_another_stack_leaves_the_run_alone_and_says_why(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    run = new_run(["say blue"] * 40, repeats=1)
    first = join_worker()
    assert first.claim_and_run()
    first.leave()
    done = ResponseRecord.objects.count()
    assert done
    other = join_worker(SCRIPTED_DTYPE="bfloat16")
    other.work()
    assert WorkerRecord.objects.get(pk=other.worker.pk).left_alone["noun"] == "run"
    assert ResponseRecord.objects.count() == done
    assert not ended(run)
    assert BucketRecord.objects.count() == 2


def test_responses_since_the_last_good_self_check_are_marked(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    run = new_run(["say blue"] * 3, repeats=2)
    join_worker(SCRIPTED_DRIFT="1")
    work_until(lambda: ended(run), "the run ends")
    assert run.events.filter(code="self_check_failed").exists()  # by the check before letting go
    vouched = set(ResponseRecord.objects.filter(repeat__index=1).values_list("is_vouched", flat=True))
    assert vouched == {False}


def test_an_engine_whose_self_check_changed_serves_no_further_shard(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait, settings: Any
) -> None:
    run = new_run(["say blue"] * 20, repeats=1)  # two shards
    settings.SELF_CHECK_SECONDS = 0.0
    join_worker(SCRIPTED_DRIFT="1")
    work_until(lambda: ended(run), "the run ends")
    bad = [
        process for process in EngineProcess.objects.all() if not all(check["same"] for check in process.self_checks)
    ]
    assert bad
    assert not ResponseRecord.objects.filter(engine_process__in=bad, is_vouched=True).exists()


@pytest.mark.nightly
def test_a_busy_worker_with_short_shards_is_seen_alive(
    new_run: Callable[..., RunRecord], join_worker: Join, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever it looks at its clock, more than a heartbeat has passed; none of its shards lives to see one."""
    run = new_run(["say blue"] * 60, repeats=1)  # five shards
    clock = itertools.count(time.monotonic(), 2 * settings.HEARTBEAT_SECONDS)
    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    seen_at = set()
    join_worker(on_answer=lambda worker: seen_at.add(WorkerRecord.objects.get().seen_at)).work()
    assert ended(run)
    assert len(seen_at) == 5
