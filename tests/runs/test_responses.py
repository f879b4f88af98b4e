"""Responses: stored once each, with traces exact to the bit, scored when a repeat ends."""

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest
from django.db import IntegrityError, transaction
from django.db.models import Sum
from django.db.models.functions import Now

from evalboard.core.digest import text_digest
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.trace import Decoded, read_trace, unpack_scores
from runs.models import (
    BucketRecord,
    CaseColumns,
    EngineProcess,
    FingerprintRecord,
    RepeatScore,
    ResponseRecord,
    RunRecord,
    Shard,
    TraceBlock,
    WorkerRecord,
)
from runs.run.runs import SHARDS_PER_REPEAT
from runs.suites import push_suite, rescore_run
from runs.sweep import reconcile
from runs.work import SHARDS, Lease, bind_bucket, claim_shard, finish_shard, record_outcomes, record_self_check
from tests import outcomes

Serve = Callable[..., None]


@pytest.fixture
def run_of_one_shard(new_run: Callable[..., RunRecord]) -> RunRecord:
    push_suite(document=outcomes.suite_document(slug="few", n_cases=12))
    return new_run(suite="few", repeats=2)


@pytest.fixture
def run_of_40_a_shard(new_run: Callable[..., RunRecord]) -> RunRecord:
    push_suite(document=outcomes.suite_document(slug="many", n_cases=SHARDS_PER_REPEAT * 40))
    return new_run(suite="many", repeats=1)


def test_a_response_is_stored_with_its_provenance_and_its_exact_trace(
    run: RunRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    outcome = outcomes.decoded(3, text="blue", logprob=float("-inf"))
    assert record_outcomes(lease=lease, process=engine_process, outcomes=[outcome]) == 1
    stored = ResponseRecord.objects.get()
    assert (stored.case_index, stored.text, stored.attempt, stored.batch_min) == (3, "blue", 1, 1)
    assert stored.trace_block is not None
    assert stored.trace_slot is not None
    trace = read_trace(bytes(stored.trace_block.data), stored.trace_slot)
    assert trace.digest == outcome.trace.digest == bytes(stored.trace_digest)


def test_a_text_that_the_database_cannot_hold_is_stored_with_the_exact_digest(
    run: RunRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    record_outcomes(
        lease=lease,
        process=engine_process,
        outcomes=[outcomes.decoded(0, text="a\0b"), outcomes.failed(1, detail="\0")],
    )
    answered, missing = ResponseRecord.objects.order_by("case_index")
    assert (answered.text, missing.error_detail) == ("a\ufffdb", "\ufffd")
    assert bytes(answered.text_digest or b"") == text_digest("a\0b")


def test_a_case_that_has_a_response_keeps_the_first_one(
    run: RunRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    for text in ("first", "second"):
        record_outcomes(lease=lease, process=engine_process, outcomes=[outcomes.decoded(0, text=text)])
    assert ResponseRecord.objects.get().text == "first"
    assert Shard.objects.get(pk=lease.id).n_done == 1


def test_two_outcomes_of_one_case_at_once_are_refused_by_the_database(
    run: RunRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    twice = [outcomes.decoded(0), outcomes.decoded(1), outcomes.decoded(0)]
    with pytest.raises(IntegrityError, match="one_response_per_case_and_repeat"), transaction.atomic():
        record_outcomes(lease=lease, process=engine_process, outcomes=twice)
    assert not ResponseRecord.objects.exists()
    assert not TraceBlock.objects.exists()


def test_recording_renews_the_lease(run: RunRecord, worker: WorkerRecord, engine_process: EngineProcess) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    Shard.objects.update(lease_until=Now() - timedelta(seconds=1))
    record_outcomes(lease=lease, process=engine_process, outcomes=[outcomes.decoded(0)])
    assert not SHARDS.expired().exists()


def test_identical_repeats_store_one_trace_a_case(new_run: Callable[..., RunRecord], serve: Serve) -> None:
    run = new_run(repeats=5)
    serve()
    assert ResponseRecord.objects.filter(repeat__run=run).count() == 150
    assert TraceBlock.objects.aggregate(n=Sum("n_traces"))["n"] == 30
    assert not TraceBlock.objects.filter(is_packed=False).exists()


def test_a_trace_that_an_earlier_repeat_holds_is_not_stored_even_for_a_while(
    run_of_one_shard: RunRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    for _ in range(2):
        lease = claim_shard(worker=worker)
        assert lease is not None
        record_outcomes(lease=lease, process=engine_process, outcomes=_of_the_shard(lease))
        assert TraceBlock.objects.get().n_traces == 12
        finish_shard(lease=lease)
    assert TraceBlock.objects.get().responses.count() == 24


def test_repeats_that_are_decoded_at_once_share_equal_traces_when_they_end(
    run_of_one_shard: RunRecord, new_worker: Callable[..., WorkerRecord], engine_process: EngineProcess
) -> None:
    leases = [claim_shard(worker=new_worker(name)) for name in ("one", "other")]
    for lease in leases:
        assert lease is not None
        record_outcomes(lease=lease, process=engine_process, outcomes=_of_the_shard(lease))
    assert TraceBlock.objects.filter(is_packed=False).count() == 2
    for lease in leases:
        assert lease is not None
        finish_shard(lease=lease)
    assert TraceBlock.objects.get(is_packed=True).responses.count() == 24
    _assert_that_all_traces_read_back()


def test_a_shards_only_block_is_final_as_it_is(
    run_of_one_shard: RunRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    record_outcomes(lease=lease, process=engine_process, outcomes=_of_the_shard(lease))
    stored = TraceBlock.objects.get()
    finish_shard(lease=lease)
    assert TraceBlock.objects.get(is_packed=True) == stored


def test_full_blocks_stay_and_the_others_of_a_shard_are_packed_together(
    run_of_40_a_shard: RunRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    came = _of_the_shard(lease)
    for batch in (came[8:], came[:3], came[3:8]):  # 32, 3 and 5
        record_outcomes(lease=lease, process=engine_process, outcomes=batch)
    full = TraceBlock.objects.get(n_traces=32)
    finish_shard(lease=lease)
    assert list(TraceBlock.objects.order_by("id").values_list("n_traces", "is_packed")) == [(32, True), (8, True)]
    assert TraceBlock.objects.filter(pk=full.pk).exists()
    _assert_that_all_traces_read_back()


def test_more_than_a_block_holds_fills_one_and_begins_another(
    run_of_40_a_shard: RunRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    record_outcomes(lease=lease, process=engine_process, outcomes=_of_the_shard(lease))
    blocks = TraceBlock.objects.order_by("id").values_list("id", "n_traces")
    before = list(blocks)
    assert [n for _, n in before] == [32, 8]
    finish_shard(lease=lease)
    assert list(blocks.filter(is_packed=True)) == before, "packing again would make no fewer"
    _assert_that_all_traces_read_back()


def test_a_trace_that_differs_is_stored_beside_the_others_and_all_read_back(run: RunRecord, serve: Serve) -> None:
    serve(lambda repeat, case: outcomes.decoded(case, logprob=-0.5 if (repeat, case) == (2, 7) else -0.25))
    assert TraceBlock.objects.aggregate(n=Sum("n_traces"))["n"] == 31
    _assert_that_all_traces_read_back()


def test_a_finished_run_has_scores_and_columns_for_every_repeat(run: RunRecord, serve: Serve) -> None:
    serve(lambda repeat, case: outcomes.decoded(case, text="blue" if case % 2 else "red"))
    run.refresh_from_db()
    assert run.status == "finished"
    assert list(RepeatScore.objects.values_list("points", flat=True)) == [50.0, 50.0]
    stored = CaseColumns.objects.first()
    assert stored is not None
    assert len(bytes(stored.text_digests)) == 30 * 16
    scores = unpack_scores(bytes(RepeatScore.objects.first().scores), 30)  # type: ignore[union-attr]
    assert np.array_equal(scores, [case % 2 for case in range(30)])


def test_a_missing_response_makes_the_run_incomplete_and_gives_no_points(run: RunRecord, serve: Serve) -> None:
    serve(lambda repeat, case: outcomes.failed(case) if (repeat, case) == (1, 4) else outcomes.decoded(case))
    run.refresh_from_db()
    assert run.status == "incomplete"
    first, second = RepeatScore.objects.order_by("repeat__index")
    assert (first.points, first.n_missing, second.n_missing) == (None, 1, 0)
    assert run.events.get(code="prompt_too_long").text.startswith("Case case-4: ")


def test_failures_of_one_kind_are_told_twenty_times_and_then_only_counted(
    new_run: Callable[..., RunRecord], serve: Serve
) -> None:
    run = new_run(repeats=1)
    serve(lambda repeat, case: outcomes.failed(case) if case < 27 else outcomes.failed(case, code="timeout"))
    told = run.events.filter(code="prompt_too_long")
    assert list(told.values_list("level", flat=True)) == ["error"] * 20 + ["warning"]
    assert run.events.filter(code="timeout").count() == 3
    assert ResponseRecord.objects.filter(repeat__run=run, error_code="prompt_too_long").count() == 27


def test_many_failures_at_once_are_told_as_those_that_come_one_by_one(
    run_of_40_a_shard: RunRecord, worker: WorkerRecord
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    record_outcomes(lease=lease, process=None, outcomes=[outcomes.failed(case) for case in range(40)])
    told = list(run_of_40_a_shard.events.filter(code="prompt_too_long").values_list("text", flat=True))
    assert [text.partition(":")[0] for text in told[:20]] == [f"Case case-{case}" for case in range(20)]
    assert len(told) == 21


def test_the_same_stack_lands_in_the_same_bucket_and_another_dtype_in_another(
    new_engine_process: Callable[..., EngineProcess],
) -> None:
    first, again, other = new_engine_process(), new_engine_process(), new_engine_process(dtype="bfloat16")
    assert first.bucket == again.bucket
    assert other.bucket != first.bucket
    assert (BucketRecord.objects.count(), FingerprintRecord.objects.count()) == (2, 2)


def test_a_run_keeps_to_the_bucket_of_its_first_shard(
    run: RunRecord, new_engine_process: Callable[..., EngineProcess]
) -> None:
    assert bind_bucket(run_id=run.pk, bucket=new_engine_process().bucket)
    assert not bind_bucket(run_id=run.pk, bucket=new_engine_process(dtype="bfloat16").bucket)


def test_a_broken_pin_is_recorded_as_broken(new_engine_process: Callable[..., EngineProcess]) -> None:
    assert new_engine_process().pins == [{"name": "max_num_seqs", "wanted": 1, "found": 1, "held": True}]
    assert new_engine_process(max_num_seqs=8).pins[0]["held"] is False


def test_a_self_check_that_changes_marks_the_responses_since_the_last_good_one(
    run: RunRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    digests = ["aa", "aa", "bb"]
    for case, digest in enumerate(digests):
        same = record_self_check(process=engine_process, digest=digest)
        assert same is (digest == "aa")
        record_outcomes(lease=lease, process=engine_process, outcomes=[outcomes.decoded(case)])
    vouched = dict(ResponseRecord.objects.values_list("case_index", "is_vouched"))
    assert vouched == {0: True, 1: False, 2: True}
    assert run.events.filter(code="self_check_failed").exists()


def test_rescoring_keeps_both_scores_and_runs_nothing(run: RunRecord, serve: Serve) -> None:
    serve(lambda repeat, case: outcomes.decoded(case, text="BLUE"))
    assert set(RepeatScore.objects.values_list("points", flat=True)) == {0.0}
    recorded = set(ResponseRecord.objects.values_list("id", "recorded_at"))
    rescore_run(run_id=run.pk, scorer={"kind": "exact", "normalise": {"case": "fold"}})
    assert sorted(RepeatScore.objects.values_list("points", flat=True)) == [0.0, 0.0, 100.0, 100.0]
    assert set(ResponseRecord.objects.values_list("id", "recorded_at")) == recorded


def test_rescoring_says_what_is_wrong(run: RunRecord, serve: Serve) -> None:
    with pytest.raises(Conflict):
        rescore_run(run_id=run.pk, scorer={"kind": "exact"})
    serve()
    with pytest.raises(InvalidInput):
        rescore_run(run_id=run.pk, scorer={"kind": "astrology"})
    with pytest.raises(InvalidInput) as refused:
        rescore_run(run_id=run.pk, scorer={"kind": "number"})
    assert "cases[0].target" in refused.value.fields
    with pytest.raises(NotFound):
        rescore_run(run_id=run.pk, cases={"nobody": {"kind": "exact"}})
    assert RepeatScore.objects.count() == 2


def test_a_repeat_whose_last_worker_died_before_ending_it_is_ended_by_the_reconciler(
    run: RunRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    while lease := claim_shard(worker=worker):
        shard = Shard.objects.get(pk=lease.id)
        came = [outcomes.decoded(case) for case in range(shard.first, shard.last + 1)]
        record_outcomes(lease=lease, process=engine_process, outcomes=came)
        Shard.objects.filter(pk=shard.pk).update(status="finished", lease_until=None)
    reconcile()
    run.refresh_from_db()
    assert run.status == "finished"


def test_a_repeat_that_cannot_be_ended_is_said_on_its_run_and_stops_no_other(
    new_run: Callable[..., RunRecord], worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    damaged, sound = new_run(repeats=1), new_run(repeats=1)
    while lease := claim_shard(worker=worker):
        shard = Shard.objects.get(pk=lease.id)
        came = [outcomes.decoded(case) for case in range(shard.first, shard.last + 1)]
        record_outcomes(lease=lease, process=engine_process, outcomes=came)
        Shard.objects.filter(pk=shard.pk).update(status="finished", lease_until=None)
    ResponseRecord.objects.filter(repeat__run=damaged, case_index=3).update(
        engine_process=None
    )  # no bucket to score in
    for _ in range(2):
        reconcile()
    sound.refresh_from_db()
    damaged.refresh_from_db()
    assert (sound.status, damaged.status) == ("finished", "running")
    assert damaged.events.filter(code="not_ended").count() == 1


def _of_the_shard(lease: Lease) -> list[Decoded]:
    shard = Shard.objects.get(pk=lease.id)
    return [outcomes.decoded(case, logprob=-0.25 - case / 64) for case in range(shard.first, shard.last + 1)]


def _assert_that_all_traces_read_back() -> None:
    for response in ResponseRecord.objects.select_related("trace_block"):
        assert response.trace_block is not None
        assert response.trace_slot is not None
        trace = read_trace(bytes(response.trace_block.data), response.trace_slot)
        assert trace.digest == bytes(response.trace_digest)
