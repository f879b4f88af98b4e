"""Claims, leases and the fence: who may work on a shard, and who may still write."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from evalboard.core.errors import LeaseLost
from evalboard.core.profile import DEFAULT_PROFILES, NO_ENGINE
from runs.catalogue import create_profile
from runs.models import EngineProcess, Event, ReplayRecord, ResponseRecord, RunRecord, Shard, WorkerRecord
from runs.replays import REPLAYS
from runs.run import cancel_run
from runs.sweep import _take_back, reconcile, release_dead_workers
from runs.work import (
    SHARDS,
    Beat,
    Lease,
    beat,
    cancel_shard,
    claim_shard,
    count_engine_failure,
    fail_start,
    finish_shard,
    forget_engine_failures,
    mark_in_flight,
    others_work,
    record_outcomes,
    release_shard,
    renew_shard,
)
from runs.work.workers import able, leave_alone, living_workers, record_pace
from tests import outcomes


def expire(lease: Lease) -> None:
    Shard.objects.filter(pk=lease.id).update(lease_until=Now())


def test_shards_are_claimed_oldest_first_and_each_once(run: RunRecord, worker: WorkerRecord) -> None:
    claimed = [claim_shard(worker=worker) for _ in range(7)]
    assert [lease.id for lease in claimed if lease] == list(
        Shard.objects.filter(repeat__run=run).order_by("id").values_list("id", flat=True)
    )
    assert claimed[-1] is None


def test_a_claim_starts_the_run_and_its_repeat(run: RunRecord, worker: WorkerRecord) -> None:
    claim_shard(worker=worker)
    run.refresh_from_db()
    assert (run.status, run.started_at is not None) == ("running", True)
    assert list(run.repeats.values_list("status", flat=True)) == ["running", "queued"]


def test_a_lease_is_a_right_to_its_own_shard_alone(run: RunRecord, worker: WorkerRecord) -> None:
    mine, other = claim_shard(worker=worker), claim_shard(worker=worker)
    mark_in_flight(lease=mine, case_index=1)
    release_shard(lease=mine, reason="gone", is_crash=False)
    assert Shard.objects.filter(pk=other.id, status="running", in_flight=None).exists()


def test_a_claim_whose_answer_was_lost_is_resumed_as_the_same_attempt(
    run: RunRecord, new_worker: Callable[..., WorkerRecord]
) -> None:
    """PostgreSQL may have committed what the worker was never told."""
    mine, other = new_worker("mine"), new_worker("other")
    assert SHARDS.resume(worker=mine) is None
    claimed = claim_shard(worker=mine)
    Shard.objects.filter(pk=claimed.id).update(lease_until=Now() + timedelta(seconds=1))
    assert SHARDS.resume(worker=other) is None
    assert SHARDS.resume(worker=mine) == claimed
    shard = Shard.objects.filter(pk=claimed.id)
    assert shard.filter(attempt=1, lease_until__gt=Now() + timedelta(seconds=2)).exists()
    expire(claimed)
    assert SHARDS.resume(worker=mine) is None


def test_who_is_alive_and_who_is_able_to_take_work(run: RunRecord, new_worker: Callable[..., WorkerRecord]) -> None:
    first, second = new_worker("first"), new_worker("second")
    of_first, of_second = (WorkerRecord.objects.filter(pk=each.pk) for each in (first, second))
    WorkerRecord.objects.update(seen_at=Now() - timedelta(hours=1))
    assert not living_workers().exists()
    beat(worker=first)
    assert set(living_workers()) == {first}
    leave_alone(worker=second, noun="run", key=run.pk, why="No.")
    assert set(living_workers()) == {first, second}
    assert of_first.get().left_alone is None
    beat(worker=second)
    assert of_second.get().left_alone is not None, "a beat alone says nothing of what it does"
    beat(worker=second, note="Idle.")
    assert of_second.get().left_alone is None
    of_first.update(stopped_at=Now())
    assert set(living_workers()) == {second}
    beat(worker=first)
    assert (set(able("default")), set(able("other"))) == ({first, second}, set())
    of_first.update(rests_until=Now() + timedelta(minutes=1))
    of_second.update(rests_until=Now() - timedelta(minutes=1))
    assert set(able("default")) == {second}
    of_second.update(hardware={"kind": NO_ENGINE})
    assert (set(able("default")), set(able("default", needs_engine=False))) == (set(), {second})
    for n, seconds in ((10, 2.0), (0, 1.0), (10, 0.0)):
        record_pace(worker=first, n_responses=n, seconds=seconds)
        assert of_first.get().pace == 5.0
    assert of_second.get().pace is None


def test_other_work_goes_oldest_first_to_a_worker_of_its_pool_with_what_it_needs(
    run: RunRecord, new_worker: Callable[..., WorkerRecord]
) -> None:
    asked = {"endpoint": run.endpoint, "profile": run.profile, "body": {}, "variants": [{}]}
    first, second, _ = (ReplayRecord.objects.create(**asked) for _ in range(3))
    everything, mine = ReplayRecord.objects.all(), new_worker("mine")
    assert REPLAYS.claim(everything, worker=new_worker("elsewhere", pool="other")) is None
    assert REPLAYS.claim(everything, worker=new_worker("caller", hardware={"kind": NO_ENGINE})) is None
    ReplayRecord.objects.filter(pk=second.pk).update(next_at=Now() + timedelta(minutes=1))
    claimed = [REPLAYS.claim(everything, worker=mine) for _ in range(3)]
    assert [lease and lease.id for lease in claimed] == [first.pk, second.pk + 1, None], "none twice, and none early"


@pytest.mark.django_db(transaction=True)
def test_a_shard_that_many_workers_want_goes_to_one(
    new_run: Callable[..., RunRecord], new_worker: Callable[..., WorkerRecord]
) -> None:
    run = new_run(repeats=4)
    workers = [new_worker(f"w{number}") for number in range(8)]

    def claim_all(worker: WorkerRecord) -> list[int]:
        taken = []
        while lease := claim_shard(worker=worker):
            taken.append(lease.id)
        connection.close()
        return taken

    with ThreadPoolExecutor(len(workers)) as pool:
        taken = [shard for shards in pool.map(claim_all, workers) for shard in shards]
    assert sorted(taken) == sorted(Shard.objects.filter(repeat__run=run).values_list("id", flat=True))


def test_a_worker_of_another_pool_claims_nothing(run: RunRecord, new_worker: Callable[..., WorkerRecord]) -> None:
    assert claim_shard(worker=new_worker(pool="gpu")) is None


def test_a_run_that_is_left_alone_is_not_claimed(run: RunRecord, worker: WorkerRecord) -> None:
    assert claim_shard(worker=worker, left_alone=frozenset({run.pk})) is None


def test_a_heartbeat_renews_a_lease_that_is_held(run: RunRecord, worker: WorkerRecord) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    expire(lease)
    assert renew_shard(lease=lease) == Beat(is_held=True, is_cancel_wanted=False)
    assert not SHARDS.expired().exists()


def test_an_earlier_attempt_of_the_same_worker_holds_nothing(run: RunRecord, worker: WorkerRecord) -> None:
    first = claim_shard(worker=worker)
    assert first is not None
    release_shard(lease=first, reason="The engine stopped.", is_crash=False)
    second = claim_shard(worker=worker)
    assert second is not None
    assert (second.id, second.attempt) == (first.id, first.attempt + 1)
    assert not renew_shard(lease=first).is_held
    with pytest.raises(LeaseLost):
        mark_in_flight(lease=first, case_index=0)
    assert renew_shard(lease=second).is_held


def test_an_expired_lease_goes_back_to_the_queue_and_the_page_can_tell(run: RunRecord, worker: WorkerRecord) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    expire(lease)
    assert reconcile() == 1
    again = claim_shard(worker=worker)
    assert again is not None
    assert (again.id, again.attempt) == (lease.id, 2)
    assert list(run.events.values_list("code", flat=True)) == ["created", "worker_lost", "attempt"]


def test_an_attempt_that_lost_its_shard_can_write_nothing(
    run: RunRecord, new_worker: Callable[..., WorkerRecord]
) -> None:
    slow, quick = new_worker("slow"), new_worker("quick")
    old = claim_shard(worker=slow)
    assert old is not None
    expire(old)
    reconcile()
    new = claim_shard(worker=quick)
    assert new is not None
    assert new.id == old.id
    with pytest.raises(LeaseLost):
        record_outcomes(lease=old, process=None, outcomes=[outcomes.failed(0)])
    with pytest.raises(LeaseLost):
        finish_shard(lease=old)
    cancel_shard(lease=old)
    release_shard(lease=old, reason="late", is_crash=True)
    shard = Shard.objects.get(pk=new.id)
    assert (shard.status, shard.attempt, shard.owner_id, shard.n_crashes) == ("running", 2, quick.pk, 1)
    assert not ResponseRecord.objects.exists()
    assert not renew_shard(lease=old).is_held


def test_a_lease_is_no_right_to_a_row_of_another_kind(run: RunRecord, worker: WorkerRecord) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    assert (lease.kind, str(lease)) == ("shard", f"shard {lease.id}")
    with pytest.raises(ValueError, match=f"A lease of shard {lease.id} is no right to a replay"):
        REPLAYS.renew(lease=lease)


def test_the_reconciler_leaves_a_living_lease_alone(run: RunRecord, worker: WorkerRecord) -> None:
    claim_shard(worker=worker)
    assert reconcile() == 0
    assert Shard.objects.filter(status="running").count() == 1


def test_shards_of_a_process_that_is_gone_are_taken_back_at_once(
    run: RunRecord, new_worker: Callable[..., WorkerRecord]
) -> None:
    gone, alive, elsewhere = (
        new_worker("gone", pid=7, place="here", process_started=70),
        new_worker("alive", pid=8, place="here", process_started=80),
        new_worker("far", pid=7, place="there", process_started=70),
    )
    leases = [claim_shard(worker=each) for each in (gone, alive, elsewhere)]
    assert release_dead_workers(place="here", is_gone=lambda pid, started: (pid, started) != (8, 80)) == 1
    assert leases[0] is not None
    assert Shard.objects.get(pk=leases[0].id).status == "queued"
    assert Shard.objects.filter(status="running").count() == 2
    gone.refresh_from_db()
    assert gone.stopped_at is not None


def test_a_case_in_flight_at_the_third_crash_is_blamed_and_the_shard_goes_on(
    run: RunRecord, worker: WorkerRecord
) -> None:
    for crash in range(3):
        lease = claim_shard(worker=worker)
        assert lease is not None
        if crash == 2:
            mark_in_flight(lease=lease, case_index=4)
        expire(lease)
        reconcile()
    shard = Shard.objects.get(pk=lease.id)
    assert (shard.status, shard.n_crashes, shard.n_done) == ("queued", 3, 1)
    blamed = ResponseRecord.objects.get()
    assert (blamed.case_index, blamed.error_code) == (4, "worker_crash")


def test_a_case_is_not_blamed_while_cases_still_run_together(run: RunRecord, worker: WorkerRecord) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    mark_in_flight(lease=lease, case_index=4)
    expire(lease)
    reconcile()
    assert not ResponseRecord.objects.exists()


def test_an_engine_that_does_not_start_three_times_fails_the_run_with_its_words(
    run: RunRecord, worker: WorkerRecord, settings: Any
) -> None:
    settings.START_PAUSE_SECONDS = 0.0
    for _ in range(3):
        lease = claim_shard(worker=worker)
        assert lease is not None
        fail_start(lease=lease, reason="No room for the cache.")
    run.refresh_from_db()
    assert (run.status, run.failure) == ("failed", "No room for the cache.")
    assert claim_shard(worker=worker) is None
    assert run.events.filter(level=Event.Level.ERROR, code="engine_start_failed").exists()


def test_after_each_failed_start_the_whole_run_waits_for_longer(
    run: RunRecord, worker: WorkerRecord, settings: Any
) -> None:
    settings.START_PAUSE_SECONDS = 100.0
    for n_failed in (1, 2):
        lease = claim_shard(worker=worker)
        assert lease is not None
        fail_start(lease=lease, reason="No room for the cache.")
        assert claim_shard(worker=worker) is None
        waiting = Shard.objects.filter(repeat__run=run, next_at__gt=Now() + timedelta(seconds=100 * n_failed - 50))
        assert waiting.count() == Shard.objects.filter(repeat__run=run).count()
        Shard.objects.update(next_at=Now())


def test_a_shard_that_crashes_on_and_on_has_failed_and_ends_its_run(run: RunRecord, worker: WorkerRecord) -> None:
    for _ in range(60):
        lease = claim_shard(worker=worker)
        if lease is None:
            break
        release_shard(lease=lease, reason="A fault of ours.", is_crash=True)
    run.refresh_from_db()
    assert run.status == "failed"
    assert set(Shard.objects.values_list("status", "n_crashes")) == {("failed", 6)}


def test_a_shard_whose_engine_left_out_a_case_is_not_finished(
    run: RunRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    shard = Shard.objects.get(pk=lease.id)
    some = [outcomes.decoded(case) for case in range(shard.first, shard.last)]
    record_outcomes(lease=lease, process=engine_process, outcomes=some)
    finish_shard(lease=lease)
    shard.refresh_from_db()
    assert (shard.status, shard.n_crashes, shard.n_done) == ("queued", 1, len(some))
    assert "left out 1 of" in shard.error


@pytest.mark.parametrize("is_crash", [True, False])
def test_a_shard_given_back_while_its_run_is_being_cancelled_is_cancelled(
    run: RunRecord, worker: WorkerRecord, is_crash: bool
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    cancel_run(run_id=run.pk)
    release_shard(lease=lease, reason="The engine died.", is_crash=is_crash)
    run.refresh_from_db()
    assert run.status == "cancelled"


def test_a_shard_left_in_the_queue_of_a_run_being_cancelled_is_ended_by_the_reconciler(
    run: RunRecord, worker: WorkerRecord
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    cancel_run(run_id=run.pk)
    # As where a worker gave it back, not yet knowing, in the moment of the cancelling.
    Shard.objects.filter(pk=lease.id).update(status="queued", owner=None, lease_until=None)
    reconcile()
    run.refresh_from_db()
    assert run.status == "cancelled"


def test_a_lease_renewed_while_the_reconciler_was_on_its_way_is_left_alone(
    run: RunRecord, worker: WorkerRecord
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    assert not _take_back(SHARDS.expired(), lease.id, "it was late")
    assert renew_shard(lease=lease).is_held


@pytest.mark.nightly
def test_a_shard_whose_workers_die_without_a_case_to_blame_has_failed_in_the_end(
    run: RunRecord, worker: WorkerRecord
) -> None:
    for _ in range(60):
        lease = claim_shard(worker=worker)
        if lease is None:
            break
        expire(lease)
        reconcile()
    run.refresh_from_db()
    assert run.status == "failed"


def test_a_fixed_group_that_kills_its_worker_is_blamed_as_a_whole(
    new_run: Callable[..., RunRecord], worker: WorkerRecord
) -> None:
    create_profile(slug="fixed", title="", settings=DEFAULT_PROFILES["fixed"]["settings"])
    new_run(profile="fixed", repeats=1)
    for _ in range(3):
        lease = claim_shard(worker=worker)
        assert lease is not None
        mark_in_flight(lease=lease, case_index=8)
        expire(lease)
        reconcile()
    blamed = list(ResponseRecord.objects.order_by("case_index").values_list("case_index", "error_code"))
    assert blamed == [(index, "worker_crash") for index in range(8, 16)]


def test_a_run_that_workers_leave_alone_again_and_again_has_one_line_for_it(
    run: RunRecord, worker: WorkerRecord
) -> None:
    for _ in range(5):
        lease = claim_shard(worker=worker)
        assert lease is not None
        release_shard(lease=lease, reason="Another serving stack.", is_crash=False)
    assert list(run.events.values_list("code", flat=True)) == ["created", "shard_released"]


def long_ago(run: RunRecord) -> None:
    run.events.update(at=Now() - timedelta(minutes=11))


def test_a_run_that_is_only_left_alone_for_ten_minutes_says_that_it_waits(run: RunRecord, worker: WorkerRecord) -> None:
    long_ago(run)
    lease = claim_shard(worker=worker)
    assert lease is not None
    release_shard(lease=lease, reason="Another serving stack.", is_crash=False)
    reconcile()
    assert run.events.filter(code="no_matching_worker").count() == 1


def test_a_run_does_not_say_that_it_waits_between_two_of_its_shards_or_behind_another(
    new_run: Callable[..., RunRecord], worker: WorkerRecord
) -> None:
    served, behind = new_run(), new_run()
    lease = claim_shard(worker=worker)
    assert lease is not None
    Shard.objects.filter(pk=lease.id).update(n_done=F("last") - F("first") + 1)
    finish_shard(lease=lease)
    long_ago(served)
    long_ago(behind)
    reconcile()
    assert not Event.objects.filter(code="no_matching_worker").exists()


def test_a_worker_that_was_taken_for_gone_is_alive_again_when_it_beats(worker: WorkerRecord) -> None:
    WorkerRecord.objects.update(seen_at=Now() - timedelta(days=1))
    reconcile()
    worker.refresh_from_db()
    assert worker.stopped_at is not None
    beat(worker=worker)
    worker.refresh_from_db()
    assert worker.stopped_at is None


def test_an_engines_words_that_the_database_cannot_hold_do_not_stop_the_worker(
    run: RunRecord, worker: WorkerRecord, settings: Any
) -> None:
    settings.START_PAUSE_SECONDS = 0.0
    lease = claim_shard(worker=worker)
    assert lease is not None
    release_shard(lease=lease, reason="a\0b\ud800", is_crash=True)
    assert Shard.objects.get(pk=lease.id).error == "a\ufffdb\ufffd"
    for _ in range(3):
        lease = claim_shard(worker=worker)
        assert lease is not None
        fail_start(lease=lease, reason="a\0b")
    run.refresh_from_db()
    assert run.failure == "a\ufffdb"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_cancel", [True, False])
def test_who_ends_a_run_never_waits_crosswise_with_who_works_on_it(
    run: RunRecord, new_worker: Callable[..., WorkerRecord], is_cancel: bool
) -> None:
    """A claim locks its shard and then wants the run; so does an attempt that records."""
    held, failing = (claim_shard(worker=new_worker(name)) for name in ("a", "b"))
    assert held is not None
    assert failing is not None
    Shard.objects.filter(pk=failing.id).update(n_failed_starts=2)
    if is_cancel:
        Shard.objects.filter(pk=held.id).update(status="queued")

    def end() -> None:
        if is_cancel:
            cancel_run(run_id=run.pk)
        else:
            fail_start(lease=failing, reason="No room.")
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Shard.objects.select_for_update().get(pk=held.id)
            ending = pool.submit(end)
            time.sleep(0.5)  # until it waits for the shard
            RunRecord.objects.filter(pk=run.pk).update(started_at=Now())
        ending.result(timeout=60)
    assert not Shard.objects.open().filter(pk=held.id).exists()


def test_a_worker_whose_engine_failed_three_times_takes_no_work_until_it_works_again(
    new_worker: Callable[..., WorkerRecord],
) -> None:
    failing, other = new_worker(name="failing"), new_worker(name="other")
    failures = [count_engine_failure(worker=failing, detail="It was killed.", rests=True) for _ in range(3)]
    assert failures == [False, False, True]
    assert not others_work(worker=other)
    forget_engine_failures(worker=failing)
    assert others_work(worker=other)
