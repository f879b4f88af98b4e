"""A worker's wall clock is an hour off: leases, rings and sweeps go by the database's clock and do not notice."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from runs.models import ResponseRecord, RunRecord, Shard, WorkerRecord
from runs.sweep import reconcile
from tests.faults.whole import assert_whole
from tests.worker.conftest import Start, Wait, ended, kill_group

pytestmark = pytest.mark.django_db(transaction=True)

HERE = Path(__file__).parent


@pytest.mark.nightly
@pytest.mark.parametrize("setup", ["team"], indirect=True)  # whose messages carry times as well
@pytest.mark.parametrize("shift", [3600, -3600])
def test_a_worker_whose_clock_is_an_hour_off_works_as_any_other(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, shift: int
) -> None:
    """R13: beside a worker whose clock is right, both are killed; nothing is taken early, nothing is left."""
    wrong = {"PYTHONPATH": str(HERE / "clock"), "SHIFT_SECONDS": str(shift), "EVALBOARD_LOOK_SECONDS": "3600"}
    run = new_run(["say blue"] * 36, repeats=1)
    right = start_worker(SCRIPTED_SECONDS="1.0")  # still at its shard when the second has started
    wait_until(lambda: ResponseRecord.objects.count() >= 2, "the first worker serves")
    start_worker(SCRIPTED_SECONDS="0.1", **wrong)
    wait_until(lambda: WorkerRecord.objects.count() == 2, "the second worker has registered")
    second = WorkerRecord.objects.latest("pk")
    wait_until(lambda: ResponseRecord.objects.filter(engine_process__worker=second).count() >= 3, "both serve")
    assert not run.events.filter(code="worker_lost").exists()  # it sweeps, and takes no living lease for ended
    second.refresh_from_db()
    assert abs(second.seen_at - timezone.now()) < timedelta(minutes=1)
    kill_group(right)

    def is_noticed() -> bool:
        reconcile()  # as the scheduler does: the second worker looks once an hour, and may have nothing left
        return run.events.filter(code="worker_lost").exists()

    wait_until(is_noticed, "the ended lease is noticed")
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)
    assert Shard.objects.filter(repeat__run=run, n_crashes=1).count() == 1
    rung = new_run(["say blue"] * 3, repeats=1)
    wait_until(lambda: ended(rung), "the second run ends")
    assert_whole(rung)
