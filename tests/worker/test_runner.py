"""Workers as processes, killed and stopped in the middle of their work: nothing is lost, nothing is doubled."""

import signal
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from runs.models import Bucket, EngineProcess, Response, Run, Shard, Worker
from runs.run import cancel_run
from tests.processes import is_gone
from tests.worker.conftest import LEASE_SECONDS, Start, Wait, ended, engines

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_worker_killed_mid_run_loses_nothing_and_doubles_nothing(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    run = new_run(["say blue"] * 20, repeats=2)
    first = start_worker(SCRIPTED_SECONDS="0.05")
    wait_until(lambda: Response.objects.count() >= 5, "five responses are stored")
    left = engines(first)
    first.kill()
    kept = set(Response.objects.values_list("id", flat=True))
    start_worker(SCRIPTED_SECONDS="0.01")
    wait_until(lambda: ended(run), "the run ends")
    assert run.status == "finished"
    assert kept <= set(Response.objects.values_list("id", flat=True))
    keys = list(Response.objects.values_list("repeat__index", "case_index"))
    assert sorted(keys) == [(repeat, case) for repeat in (1, 2) for case in range(20)]
    shards = Shard.objects.filter(repeat__run=run)
    assert sum(shards.values_list("n_done", flat=True)) == 40
    assert max(shards.values_list("attempt", flat=True)) == 2
    assert run.events.filter(code="worker_lost").exists()
    assert left
    wait_until(lambda: all(map(is_gone, left)), "the killed worker's engine has died with it")


def test_a_worker_that_slept_through_its_lease_writes_nothing_afterwards(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    run = new_run(["say blue"] * 20, repeats=1)
    zombie = start_worker(SCRIPTED_SECONDS="0.1")
    wait_until(lambda: Response.objects.count() >= 3, "three responses are stored")
    zombie.send_signal(signal.SIGSTOP)
    start_worker()
    wait_until(lambda: ended(run), "the run ends")
    before = set(Response.objects.values_list("id", "attempt", "text"))
    zombie.send_signal(signal.SIGCONT)
    time.sleep(2 * LEASE_SECONDS / 3)
    assert set(Response.objects.values_list("id", "attempt", "text")) == before
    assert len(before) == 20


def test_a_prompt_that_kills_its_engine_is_isolated_and_the_rest_goes_on(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    run = new_run(["say blue"] * 5 + ["die now"] + ["say blue"] * 5, repeats=1)
    start_worker()
    wait_until(lambda: ended(run), "the run ends")
    assert run.status == "incomplete"
    missing = Response.objects.exclude(error_code="").get()
    assert (missing.case_index, missing.error_code) == (5, "engine_error")
    assert "killed by its prompt" in missing.error_detail
    assert Response.objects.filter(text="blue").count() == 10


def test_a_prompt_that_hangs_its_engine_ends_as_a_timeout(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    run = new_run(["say blue", "hang here", "say blue"], repeats=1)
    start_worker()
    wait_until(lambda: ended(run), "the run ends")
    missing = Response.objects.exclude(error_code="").get()
    assert (missing.case_index, missing.error_code) == (1, "timeout")
    assert Response.objects.filter(text="blue").count() == 2


def test_a_run_is_cancelled_within_a_heartbeat(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    run = new_run(["say blue"] * 50, repeats=1)
    start_worker(SCRIPTED_SECONDS="0.2")
    wait_until(lambda: Response.objects.exists(), "a response is stored")
    cancel_run(run_id=run.pk)
    n_before = Response.objects.count()
    wait_until(lambda: ended(run), "the run ends")
    assert run.status == "cancelled"
    assert Response.objects.count() - n_before < 15  # three seconds of the engine's


def test_a_worker_that_is_told_to_stop_hands_its_shard_back(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    new_run(["say blue"] * 50, repeats=1)
    worker = start_worker(SCRIPTED_SECONDS="0.2")
    wait_until(lambda: Response.objects.exists(), "a response is stored")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=60) == 0
    assert not Shard.objects.filter(status="running").exists()
    assert Shard.objects.filter(n_crashes__gt=0).count() == 0
    assert Worker.objects.exclude(stopped_at=None).count() == 1


def test_a_worker_that_is_told_to_stop_while_it_starts_stops(start_worker: Start, wait_until: Wait) -> None:
    """At any moment once it is registered, while Celery still starts as well; at first the signal itself ends it."""
    workers = []
    for number, pause in enumerate((0.0, 0.03, 0.1, 0.3), start=1):
        workers.append(start_worker())
        wait_until(lambda n=number: Worker.objects.count() == n, "the worker has registered")  # type: ignore[misc]
        time.sleep(pause)  # where in its start it is told, not something that is waited for
        workers[-1].send_signal(signal.SIGTERM)
    assert {worker.wait(timeout=60) for worker in workers} <= {0, -signal.SIGTERM}


def test_the_halves_of_a_run_come_from_engine_processes_of_their_own(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    run = new_run(["say blue"] * 3, repeats=5)
    start_worker()
    wait_until(lambda: ended(run), "the run ends")
    served = {
        process.pk: set(process.responses.values_list("repeat__index", flat=True))
        for process in EngineProcess.objects.all()
    }
    assert sorted(map(sorted, served.values())) == [[1, 2, 3], [4, 5]]
    first, second = EngineProcess.objects.order_by("id")
    assert [check["same"] for check in first.self_checks] == [True, True]
    assert second.self_checks[0]["digest"] == first.self_checks[0]["digest"]


def test_a_worker_with_another_stack_leaves_the_run_alone_and_says_why(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    run = new_run(["say blue"] * 40, repeats=1)
    first = start_worker(SCRIPTED_SECONDS="0.1")
    wait_until(lambda: Response.objects.exists(), "a response is stored")
    first.send_signal(signal.SIGTERM)
    first.wait(timeout=60)
    done = Response.objects.count()
    start_worker(SCRIPTED_DTYPE="bfloat16")
    wait_until(lambda: Worker.objects.filter(left_alone__noun="run").exists(), "the worker says why")
    assert Response.objects.count() == done
    assert not ended(run)
    assert Bucket.objects.count() == 2


def test_responses_since_the_last_good_self_check_are_marked(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    run = new_run(["say blue"] * 3, repeats=2)
    start_worker(SCRIPTED_DRIFT="1")
    wait_until(lambda: ended(run), "the run ends")
    wait_until(lambda: run.events.filter(code="self_check_failed").exists(), "the check before letting go has failed")
    vouched = set(Response.objects.filter(repeat__index=1).values_list("is_vouched", flat=True))
    assert vouched == {False}


def test_an_engine_whose_self_check_changed_serves_no_further_shard(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    run = new_run(["say blue"] * 20, repeats=1)  # two shards
    start_worker(SCRIPTED_DRIFT="1", EVALBOARD_SELF_CHECK_SECONDS="0")
    wait_until(lambda: ended(run), "the run ends")
    bad = [
        process for process in EngineProcess.objects.all() if not all(check["same"] for check in process.self_checks)
    ]
    assert bad
    assert not Response.objects.filter(engine_process__in=bad, is_vouched=True).exists()


def test_a_busy_worker_with_short_shards_is_seen_alive(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    run = new_run(["say blue"] * 120, repeats=1)
    start_worker(SCRIPTED_SECONDS="0.04", EVALBOARD_LEASE_SECONDS="6", EVALBOARD_HEARTBEAT_SECONDS="1.5")
    wait_until(lambda: Response.objects.count() > 100, "most responses are stored")
    worker = Worker.objects.get()
    assert worker.seen_at - worker.started_at > timedelta(seconds=1)
    wait_until(lambda: ended(run), "the run ends")
