"""A worker is killed, sleeps, or is gone with the scheduler: its shard runs again, and what it kept stays."""

import signal
from collections.abc import Callable

import pytest

from runs.models import ResponseRecord, RunRecord, Shard, WorkerRecord
from runs.run import run_report
from runs.work import worker_rows
from tests.faults.whole import assert_whole
from tests.processes import wait_for_end
from tests.worker.conftest import Start, Wait, ended, engines, kill_group

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.nightly
def test_a_machine_that_goes_down_mid_shard_is_noticed_by_another_within_a_lease(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait
) -> None:
    """R1: SIGKILL to the worker's whole group, where no worker of the same host tells that it is gone."""
    second = start_worker(SCRIPTED_SECONDS="0.05")
    wait_until(lambda: WorkerRecord.objects.count() == 1, "the second worker has registered")
    second.send_signal(signal.SIGSTOP)  # it has started before the first dies, so that only the lease can tell it
    run = new_run(["say blue"] * 30, repeats=1)
    first = start_worker(SCRIPTED_SECONDS="0.1")
    wait_until(lambda: ResponseRecord.objects.filter(repeat__run=run).count() >= 5, "five responses are stored")
    left = engines(first)
    kill_group(first)
    kept = set(ResponseRecord.objects.values_list("id", flat=True))
    second.send_signal(signal.SIGCONT)
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)
    assert kept <= set(ResponseRecord.objects.values_list("id", flat=True))
    [lost] = run.events.filter(code="worker_lost").values_list("text", flat=True)
    assert "was not heard of for the length of a lease" in lost
    [again] = run.events.filter(code="attempt").values_list("text", flat=True)
    assert "attempt 2 begun by" in again
    assert {lost, again} <= {event.text for event in run_report(run.pk).events}  # what the run's page shows
    assert left
    wait_for_end(*left)  # the engine of the killed worker


def test_a_zombie_is_refused_and_counted(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait
) -> None:
    """R10: SIGSTOP for longer than a lease, then SIGCONT, while another worker has the shard."""
    run = new_run(["say blue"] * 12, repeats=1)  # one shard
    zombie = start_worker(SCRIPTED_SECONDS="0.3")
    wait_until(lambda: ResponseRecord.objects.count() >= 2, "two responses are stored")
    sleeper = WorkerRecord.objects.get()
    zombie.send_signal(signal.SIGSTOP)
    start_worker(SCRIPTED_SECONDS="0.3")
    wait_until(lambda: Shard.objects.filter(status="running").exclude(owner=sleeper).exists(), "another has the shard")
    zombie.send_signal(signal.SIGCONT)
    wait_until(lambda: WorkerRecord.objects.filter(pk=sleeper.pk, n_fenced=1).exists(), "the zombie was refused")
    before = dict(ResponseRecord.objects.values_list("id", "recorded_at"))
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)
    after = dict(ResponseRecord.objects.values_list("id", "recorded_at"))
    assert before.items() <= after.items()
    assert WorkerRecord.objects.get(pk=sleeper.pk).n_fenced == 1
    row = next(row for row in worker_rows() if row.name == sleeper.name)
    assert row.n_fenced == 1  # what the workers page shows
