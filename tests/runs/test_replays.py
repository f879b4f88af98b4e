"""Replays: what may be asked for, who may work on one, who may still write, and how often it is tried."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from evalboard.core.compare import make_decoded_result, make_failed_result
from evalboard.core.errors import InvalidInput, LeaseLost, NotFound, ProfileRefused
from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile
from runs.models import EngineProcess, ReplayRecord, ResponseRecord, RunRecord, SelfTestRecord, WorkerRecord
from runs.replays import REPLAYS, claim_replay, create_replay, finish_replay, record_result
from runs.replays import read as selectors
from runs.run import delete_run
from runs.sweep import reconcile, release_dead_workers
from runs.work import Beat, Lease
from tests import outcomes, self_tests

NewWorker = Callable[..., WorkerRecord]


@pytest.fixture
def replay(run: RunRecord) -> ReplayRecord:
    return create_replay(run_id=run.pk, case_id="case-3", batch_sizes=[1, 2])


def result(variant: dict[str, Any], *, error: str = "", has_response: bool = True) -> dict[str, Any]:
    """What a worker records of a variant."""
    beside = {
        "same_prompt": True,
        "same_model": True,
        "same_fingerprint": True,
        "n_neighbour_prompt_tokens": None,
        "engine_process": None,
        "bucket": None,
        "sampling": {"temperature": 0.0, "max_tokens": 8},
    }
    if error:
        return {**make_failed_result(variant, code="engine_error", detail=error), **beside}
    size = variant.get("batch_size", 1)
    gave = replace(outcomes.decoded(3), batch_min=size, batch_max=size)
    response = gave.trace if has_response else None
    found = make_decoded_result(variant, gave, response=response, earlier=[], draw=lambda ids: list(map(str, ids)))
    return {**found, **beside}


def claimed(worker: WorkerRecord) -> Lease:
    lease = claim_replay(worker=worker)
    assert lease is not None
    return lease


def expire(lease: Lease) -> None:
    ReplayRecord.objects.filter(pk=lease.id).update(lease_until=Now())


@pytest.mark.parametrize(
    ("asked", "variants"),
    [
        ({}, [{}]),
        ({"batch_sizes": [4, 1, 4]}, [{"batch_size": 1}, {"batch_size": 4}]),
        ({"dtypes": ["float32", "bfloat16", "float32"]}, [{"dtype": "float32"}, {"dtype": "bfloat16"}]),
        (
            {"batch_sizes": [1, 3], "dtypes": ["float16"], "neighbours": 2},
            [
                {"dtype": "float16", "batch_size": 1},
                {"dtype": "float16", "batch_size": 3},
                {"dtype": "float16", "batch_size": 3, "neighbours": 2},
            ],
        ),
    ],
)
def test_what_is_asked_for_becomes_variants(
    run: RunRecord, asked: dict[str, Any], variants: list[dict[str, Any]]
) -> None:
    replay = create_replay(run_id=run.pk, case_id="case-3", repeat=2, **asked)
    assert (replay.variants, replay.case_index, replay.repeat.index, replay.status) == (variants, 3, 2, "queued")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"batch_sizes": [0]}, "batch_sizes"),
        ({"batch_sizes": [257]}, "batch_sizes"),
        ({"dtypes": ["int4"]}, "dtypes"),
        ({"repeat": 3}, "repeat"),
        ({"neighbours": 2}, "neighbours"),
        ({"neighbours": 2, "batch_sizes": [1]}, "neighbours"),
        ({"neighbours": 0, "batch_sizes": [2]}, "neighbours"),
        ({"neighbours": 33, "batch_sizes": [2]}, "neighbours"),
        ({"neighbours": 2, "batch_sizes": [30]}, "neighbours"),  # 30 cases: no other 29 are left
        ({"batch_sizes": list(range(1, 34))}, "variants"),
        ({"batch_sizes": list(range(1, 13)), "dtypes": ["float32", "float16", "bfloat16"]}, "variants"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(run: RunRecord, asked: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        create_replay(run_id=run.pk, case_id="case-3", **asked)
    assert set(refused.value.fields) == {field}
    assert not ReplayRecord.objects.exists()


def test_runs_and_cases_that_are_not_there_are_not_found(run: RunRecord) -> None:
    with pytest.raises(NotFound, match=r"no run 999"):
        create_replay(run_id=999, case_id="case-3")
    with pytest.raises(NotFound, match=r"no case sky"):
        create_replay(run_id=run.pk, case_id="sky")


def test_replays_are_claimed_oldest_first_and_each_once(run: RunRecord, worker: WorkerRecord) -> None:
    asked = [create_replay(run_id=run.pk, case_id=f"case-{n}").pk for n in range(3)]
    taken = [claim_replay(worker=worker) for _ in range(4)]
    assert [lease.id for lease in taken if lease] == asked
    assert taken[-1] is None


@pytest.mark.django_db(transaction=True)
def test_a_replay_that_many_workers_want_goes_to_one(new_run: Callable[..., RunRecord], new_worker: NewWorker) -> None:
    run = new_run()
    asked = {create_replay(run_id=run.pk, case_id=f"case-{n}").pk for n in range(10)}

    def claim_all(worker: WorkerRecord) -> list[int]:
        taken = []
        while lease := claim_replay(worker=worker):
            taken.append(lease.id)
        connection.close()
        return taken

    with ThreadPoolExecutor(6) as pool:
        taken = [one for found in pool.map(claim_all, [new_worker(f"w{n}") for n in range(6)]) for one in found]
    assert sorted(taken) == sorted(asked)


def test_other_pools_and_runs_that_are_left_alone_are_not_claimed(replay: ReplayRecord, new_worker: NewWorker) -> None:
    assert claim_replay(worker=new_worker("far", pool="gpu")) is None
    assert claim_replay(worker=new_worker("near"), left_alone=frozenset({replay.run_id})) is None
    assert claim_replay(worker=new_worker("idle"), left_alone=frozenset({replay.run_id + 1})) is not None


def test_a_claim_touches_neither_the_run_nor_its_shards(replay: ReplayRecord, worker: WorkerRecord) -> None:
    claimed(worker)
    run = RunRecord.objects.get(pk=replay.run_id)
    assert (run.status, run.started_at, run.bucket_id) == ("queued", None, None)
    assert set(run.repeats.values_list("shards__status", flat=True)) == {"queued"}


def test_the_run_of_a_replay_may_have_ended_in_any_way(new_run: Callable[..., RunRecord], worker: WorkerRecord) -> None:
    for status in RunRecord.Status.values:
        run = new_run()
        create_replay(run_id=run.pk, case_id="case-0")
        RunRecord.objects.filter(pk=run.pk).update(status=status, is_cancel_wanted=status == "cancelled")
        assert ReplayRecord.objects.get(pk=claimed(worker).id).run_id == run.pk


def test_results_are_kept_in_order_and_the_end_is_read(replay: ReplayRecord, worker: WorkerRecord) -> None:
    lease = claimed(worker)
    for variant in replay.variants:
        record_result(lease=lease, result=result(variant))
    assert selectors.replay_row(replay.pk).reading == ()  # not before its end
    finish_replay(lease=lease)
    row = selectors.replay_row(replay.pk)
    assert (row.status, row.is_terminal, row.error) == ("finished", True, None)
    assert row.reading[0] == "Identical at every batch size from 1 to 2."
    assert [line["name"] for line in row.results] == ["batch size 1", "batch size 2"]
    assert "trace" not in row.results[0]
    assert claim_replay(worker=worker) is None


def test_a_result_that_is_sent_again_after_a_lost_answer_is_stored_once(
    replay: ReplayRecord, worker: WorkerRecord
) -> None:
    lease = claimed(worker)
    for _ in range(2):
        record_result(lease=lease, result=result({"batch_size": 1}))
    expire(lease)
    record_result(lease=lease, result=result({"batch_size": 1}))
    reconcile()  # and the lease is renewed all the same
    assert REPLAYS.renew(lease=lease).is_held
    record_result(lease=lease, result=result({"batch_size": 2}))
    replay.refresh_from_db()
    assert [each["variant"] for each in replay.results] == replay.variants


def test_recording_and_heartbeats_renew_the_lease(replay: ReplayRecord, worker: WorkerRecord) -> None:
    lease = claimed(worker)
    expire(lease)
    assert REPLAYS.renew(lease=lease) == Beat(is_held=True, is_cancel_wanted=False)
    reconcile()
    expire(lease)
    record_result(lease=lease, result=result({"batch_size": 1}))
    reconcile()
    assert ReplayRecord.objects.get(pk=replay.pk).status == "running"


def test_a_replay_of_which_no_variant_gave_an_answer_has_failed(replay: ReplayRecord, worker: WorkerRecord) -> None:
    lease = claimed(worker)
    for variant in replay.variants:
        record_result(lease=lease, result=result(variant, error="no\0memory"))
    finish_replay(lease=lease)
    replay.refresh_from_db()
    assert (replay.status, replay.error) == ("failed", "no\ufffdmemory")
    assert replay.finished_at is not None


def test_one_answer_is_enough(replay: ReplayRecord, worker: WorkerRecord) -> None:
    lease = claimed(worker)
    record_result(lease=lease, result=result({"batch_size": 1}))
    record_result(lease=lease, result=result({"batch_size": 2}, error="no memory"))
    finish_replay(lease=lease)
    assert selectors.replay_row(replay.pk).reading == (
        "Identical at batch size 1.",
        "There is no answer at batch size 2: engine_error: no memory",
    )


def test_an_attempt_that_lost_its_replay_can_write_nothing(replay: ReplayRecord, new_worker: NewWorker) -> None:
    slow, quick = new_worker("slow"), new_worker("quick")
    old = claimed(slow)
    record_result(lease=old, result=result({"batch_size": 1}))
    expire(old)
    reconcile()
    new = claimed(quick)
    assert (new.id, new.attempt) == (old.id, 2)
    before = ReplayRecord.objects.values().get(pk=replay.pk)
    with pytest.raises(LeaseLost):
        record_result(lease=old, result=result({"batch_size": 2}))
    with pytest.raises(LeaseLost):
        finish_replay(lease=old)
    REPLAYS.refuse(lease=old, reason="late")
    REPLAYS.release(lease=old, reason="late", may_fail=True)
    assert not REPLAYS.renew(lease=old).is_held
    assert ReplayRecord.objects.values().get(pk=replay.pk) == before
    assert len(before["results"]) == 1  # what the first attempt had stored is kept


def test_a_replay_is_deleted_with_its_run_and_then_not_held(replay: ReplayRecord, worker: WorkerRecord) -> None:
    lease = claimed(worker)
    RunRecord.objects.filter(pk=replay.run_id).update(status="finished")
    delete_run(run_id=replay.run_id)
    assert not REPLAYS.renew(lease=lease).is_held
    with pytest.raises(LeaseLost):
        record_result(lease=lease, result=result({"batch_size": 1}))


def test_a_replay_that_loses_its_worker_three_times_has_failed(replay: ReplayRecord, worker: WorkerRecord) -> None:
    for attempt in (1, 2, 3):
        lease = claimed(worker)
        assert lease.attempt == attempt
        expire(lease)
        reconcile()
    assert claim_replay(worker=worker) is None
    replay.refresh_from_db()
    assert replay.status == "failed"
    assert replay.error.startswith("It was begun 3 times and never came to an end. Its worker was not heard of")


def test_a_replay_given_back_in_good_order_is_never_given_up(replay: ReplayRecord, worker: WorkerRecord) -> None:
    for _ in range(5):
        REPLAYS.release(lease=claimed(worker), reason="The worker was stopped.", may_fail=False)
    assert claimed(worker).attempt == 6


def test_a_living_lease_is_left_alone_by_the_sweep(replay: ReplayRecord, worker: WorkerRecord) -> None:
    lease = claimed(worker)
    reconcile()
    assert REPLAYS.renew(lease=lease).is_held


def test_replays_of_a_process_that_is_gone_are_taken_back_at_once(run: RunRecord, new_worker: NewWorker) -> None:
    places = {"gone": (7, "here"), "alive": (8, "here"), "far": (7, "there")}
    owners = [new_worker(name, pid=pid, place=place, process_started=1) for name, (pid, place) in places.items()]
    for number, _ in enumerate(owners):
        create_replay(run_id=run.pk, case_id=f"case-{number}")
    leases = [claimed(owner) for owner in owners]
    release_dead_workers(place="here", is_gone=lambda pid, started: pid != 8)
    assert [REPLAYS.renew(lease=lease).is_held for lease in leases] == [False, True, True]


def test_what_this_worker_cannot_honour_is_left_to_one_that_can(
    new_run: Callable[..., RunRecord], new_worker: NewWorker
) -> None:
    create_profile(slug="invariant", title="", settings=DEFAULT_PROFILES["invariant"]["settings"])
    run = new_run(profile="invariant")
    replay = create_replay(run_id=run.pk, case_id="case-0")  # nobody is there who could say no
    weak = new_worker("weak")
    able = new_worker("able", hardware={"kind": "cuda", "gpus": [{"name": "H100", "capability": 9.0}]})
    test = {"is_invariant": True, "node_digest": "n", "host": "here", "result": self_tests.result(device="cuda")}
    WorkerRecord.objects.filter(pk=able.pk).update(self_test=SelfTestRecord.objects.create(**test))
    REPLAYS.refuse(lease=claimed(weak), reason="no kernels")
    replay.refresh_from_db()
    assert (replay.status, replay.error) == ("queued", "no kernels")
    WorkerRecord.objects.filter(pk=able.pk).update(stopped_at=Now())
    REPLAYS.refuse(lease=claimed(weak), reason="no kernels")
    replay.refresh_from_db()
    assert (replay.status, "this worker decodes on a CPU" in replay.error) == ("failed", True)
    with pytest.raises(ProfileRefused):
        create_replay(run_id=run.pk, case_id="case-0")


@pytest.mark.django_db(transaction=True)
def test_asking_and_giving_back_rings_the_pool(
    new_run: Callable[..., RunRecord], new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, rung = new_run(), []
    monkeypatch.setattr("runs.work.dispatch.ring_or_log", lambda pool, *, n_shards: rung.append((pool, n_shards)))
    create_replay(run_id=run.pk, case_id="case-0")
    REPLAYS.release(lease=claimed(new_worker()), reason="The worker was stopped.", may_fail=False)
    assert rung == [("default", 1), ("default", 1)]


@pytest.mark.nightly
def test_a_worker_learns_what_the_run_did(
    run: RunRecord, serve: Callable[..., None], engine_process: EngineProcess
) -> None:
    serve()
    replay = create_replay(run_id=run.pk, case_id="case-14", repeat=2)
    work = selectors.replay_work(replay.pk)
    assert work.case is not None
    assert (work.case.case_id, work.case.index, work.case.n_cases, work.variants) == ("case-14", 14, 30, ({},))
    assert [case.index for case in work.case.shard.cases] == list(range(12, 24))
    assert work.response is not None
    assert work.response.trace.digest == outcomes.decoded(14).trace.digest
    assert (work.response.bucket_id, work.response.prompt_digest) == (
        engine_process.bucket_id,
        outcomes.decoded(14).prompt_digest,
    )
    assert selectors.count_prompt_tokens(run.pk, [1, 2, 2]) == 9
    assert [case.index for case in selectors.cases_to_decode(replay.pk, [5, 2, 5])] == [5, 2, 5]


@pytest.mark.nightly
def test_of_a_missing_response_there_is_nothing_to_hold_against(run: RunRecord, serve: Callable[..., None]) -> None:
    before = create_replay(run_id=run.pk, case_id="case-1")
    assert selectors.replay_work(before.pk).response is None
    serve(lambda repeat, case: outcomes.failed(case))
    missing = create_replay(run_id=run.pk, case_id="case-1")
    assert selectors.replay_work(missing.pk).response is None
    assert ResponseRecord.objects.exists()
    assert selectors.count_prompt_tokens(run.pk, [0]) is None


@pytest.mark.nightly
def test_replays_are_listed_by_case_and_run_newest_first(
    run: RunRecord, django_assert_num_queries: Callable[[int], Any]
) -> None:
    asked = [create_replay(run_id=run.pk, case_id=f"case-{n % 2}").pk for n in range(6)]
    assert [int(row.id) for row in selectors.list_case_replays(run.pk, 1)] == asked[5::-2]
    with django_assert_num_queries(3):
        rows = selectors.replay_rows(run.pk, limit=50)
    assert [int(row.id) for row in rows] == asked[::-1]
    assert [int(row.id) for row in selectors.replay_rows(run.pk, after=asked[3], limit=2)] == [asked[2], asked[1]]
    assert [int(row.id) for row in selectors.replay_rows(run.pk, before=asked[3], limit=2)] == [asked[5], asked[4]]
    with pytest.raises(NotFound):
        selectors.replay_rows(999, limit=5)
    with pytest.raises(NotFound):
        selectors.replay_row(999)


def test_a_replay_that_waits_for_its_time_is_not_claimed_before_it(replay: ReplayRecord, worker: WorkerRecord) -> None:
    ReplayRecord.objects.update(next_at=Now() + timedelta(hours=1))
    assert claim_replay(worker=worker) is None
    ReplayRecord.objects.update(next_at=Now())
    assert claim_replay(worker=worker) is not None
