"""Self-tests kept with their node: who takes one over, what the manifest says, and what is refused without one."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalboard.core.errors import InvalidInput, ProfileRefused
from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile
from runs.models import EngineProcess, RunRecord, SelfTestRecord, WorkerRecord
from runs.work import record_self_test, self_test_result, stop_worker, worker_rows
from tests.self_tests import result

GPU = {"kind": "cuda", "gpus": [{"name": "NVIDIA H100", "capability": 9.0}], "n_cores": 32}
VERSIONS = {"vllm": "0.32.0", "driver": "590.10"}
FAILED = result(device="cuda", differing=[("invariant", "attention", "bfloat16")])
NewWorker = Callable[..., WorkerRecord]


def record(**changes: Any) -> SelfTestRecord:
    known = {"host": "here", "hardware": GPU, "versions": VERSIONS, "result": result(device="cuda")}
    return record_self_test(**{**known, **changes})


def of(worker: WorkerRecord) -> SelfTestRecord | None:
    worker.refresh_from_db()
    return worker.self_test


@pytest.fixture
def gpu_worker(new_worker: NewWorker) -> NewWorker:
    def register(name: str = "first", **changes: Any) -> WorkerRecord:
        return new_worker(name, **{"hardware": GPU, "versions": VERSIONS, **changes})

    return register


def test_a_worker_that_starts_has_its_nodes_newest_self_test(db: None, gpu_worker: NewWorker) -> None:
    record()
    newest = record(result=FAILED)
    assert (of(gpu_worker()), newest.is_invariant) == (newest, False)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"host": "elsewhere"}, id="host"),
        pytest.param({"versions": {**VERSIONS, "driver": "590.11"}}, id="driver"),
        pytest.param({"hardware": {**GPU, "gpus": GPU["gpus"] * 2}}, id="gpus"),
    ],
)
def test_another_nodes_self_test_vouches_for_nobody_else(
    db: None, gpu_worker: NewWorker, other: dict[str, Any]
) -> None:
    started_before = gpu_worker("before")
    record(**other)
    assert (of(started_before), of(gpu_worker("after"))) == (None, None)


def test_workers_at_work_take_a_new_self_test_over(gpu_worker: NewWorker) -> None:
    working, stopped = gpu_worker("working"), gpu_worker("stopped")
    stop_worker(worker=stopped)
    test = record()
    assert (of(working), of(stopped)) == (test, None)
    assert self_test_result(working.pk) == test.result
    assert self_test_result(stopped.pk) is None


def test_a_result_that_is_not_whole_is_not_kept(db: None) -> None:
    with pytest.raises(InvalidInput):
        record(result={"version": 1, "kernels": {"plain": None, "invariant": None}})
    assert not SelfTestRecord.objects.exists()


def test_the_manifest_tells_the_self_test_and_the_fingerprint_does_not(
    worker: WorkerRecord, new_engine_process: Callable[..., EngineProcess]
) -> None:
    before = new_engine_process()
    test = record_self_test(host=worker.host, hardware=worker.hardware, versions=worker.versions, result=result())
    after = new_engine_process()
    told = {"id": test.pk, "at": test.created_at.isoformat(), "is_invariant": True}
    assert before.manifest["host"]["self_test"] is None
    assert after.manifest["host"] == {**before.manifest["host"], "self_test": told}
    assert after.bucket == before.bucket
    assert "host" not in after.bucket.fingerprint.manifest


@pytest.fixture
def invariant(db: None) -> str:
    settings = DEFAULT_PROFILES["invariant"]["settings"]
    return create_profile(slug="invariant", title="", settings=settings)[0].slug


def test_invariant_is_refused_where_no_node_was_tested(
    new_run: Callable[..., RunRecord], invariant: str, gpu_worker: NewWorker
) -> None:
    gpu_worker("first")
    gpu_worker("second", host="there")
    with pytest.raises(ProfileRefused, match="run `evalboard worker --self-test` on "):
        new_run(profile=invariant)


def test_invariant_is_refused_where_the_self_test_failed_and_says_what(
    new_run: Callable[..., RunRecord], invariant: str, gpu_worker: NewWorker
) -> None:
    gpu_worker()
    record(result=FAILED)
    with pytest.raises(ProfileRefused, match="attention step in bfloat16: other bits in batches of 3, 8"):
        new_run(profile=invariant)


def test_one_node_that_passed_is_enough(
    new_run: Callable[..., RunRecord], invariant: str, gpu_worker: NewWorker
) -> None:
    gpu_worker("untested", host="there")
    gpu_worker("passed")
    record()
    assert new_run(profile=invariant).status == RunRecord.Status.QUEUED


def test_a_worker_row_tells_what_was_found(gpu_worker: NewWorker) -> None:
    gpu_worker("untested", host="there")
    gpu_worker("failed")
    test = record(result=FAILED)
    rows = {row.name: row.self_test for row in worker_rows()}
    assert rows["untested"] is None
    found = rows["failed"]
    assert found is not None
    assert (found.id, found.at, found.is_invariant) == (str(test.pk), test.created_at, False)
    [odd] = [finding for finding in found.findings if not finding.is_same]
    assert (odd.kernels, odd.operation, odd.dtype) == ("invariant", "attention step", "bfloat16")


def test_self_tests_cost_no_query_each(gpu_worker: NewWorker) -> None:
    def n_queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert all(row.self_test for row in worker_rows())
        return len(queries)

    gpu_worker("first")
    record()
    for_one = n_queries()
    for number in range(5):
        gpu_worker(f"worker-{number}")
    assert n_queries() == for_one
