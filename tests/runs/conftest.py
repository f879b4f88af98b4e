"""A suite, an endpoint, a worker and a run: the cast of the service tests."""

import io
import pickle
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model, QuerySet

from evalboard.core.digest import canonical_json
from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.core.release import GateEvidence
from evalboard.core.suite import PolicySettings
from evalboard.core.trace import Outcome
from runs.catalogue import create_endpoint, create_profile
from runs.models import EngineProcess, RunRecord, Shard, WorkerRecord
from runs.release import verdict_check
from runs.run import create_run
from runs.suites import push_suite
from runs.work import bind_bucket, claim_shard, finish_shard, open_engine_process, record_outcomes, register_worker
from tests import outcomes


@pytest.fixture
def suite(db: None) -> str:
    version, _ = push_suite(document=outcomes.suite_document(slug="colours", n_cases=30))
    return version.suite.slug


@pytest.fixture
def endpoint(db: None, settings: Any) -> str:
    path = settings.MODEL_ROOTS[0] / "paint-1b"
    return create_endpoint(slug="local", model_path=str(path), dtype="float32", line="paint").slug


@pytest.fixture
def profile(db: None) -> str:
    stored, _ = create_profile(slug="pinned", title="Pinned", settings=DEFAULT_PROFILES["pinned"]["settings"])
    return stored.slug


@pytest.fixture
def new_run(suite: str, endpoint: str, profile: str) -> Callable[..., RunRecord]:
    def create(**changes: Any) -> RunRecord:
        return create_run(**{"suite": suite, "endpoint": endpoint, "profile": profile, "repeats": 2, **changes})

    return create


@pytest.fixture
def run(new_run: Callable[..., RunRecord]) -> RunRecord:
    return new_run()


@pytest.fixture
def new_worker(db: None) -> Callable[..., WorkerRecord]:
    def register(name: str = "first", **changes: Any) -> WorkerRecord:
        known = {"host": "here", "pid": 1, "pool": "default", "hardware": {"kind": "cpu"}, "versions": {}}
        return register_worker(**{"name": name, **known, **changes})

    return register


@pytest.fixture
def worker(new_worker: Callable[..., WorkerRecord]) -> WorkerRecord:
    return new_worker()


@pytest.fixture
def new_engine_process(worker: WorkerRecord) -> Callable[..., EngineProcess]:
    def start(**changes: Any) -> EngineProcess:
        manifest = outcomes.manifest(**changes)
        return open_engine_process(
            worker=worker,
            manifest=manifest,
            wanted_pins={"max_num_seqs": 1},
            batch_class="alone",
            line="paint",
            model_name="paint-1b",
            start_seconds=4.5,
        )

    return start


@pytest.fixture
def engine_process(new_engine_process: Callable[..., EngineProcess]) -> EngineProcess:
    return new_engine_process()


@pytest.fixture
def serve(worker: WorkerRecord, engine_process: EngineProcess) -> Callable[..., None]:
    """Work every queued shard to its end, as a worker would, with `answer(repeat, case)` as the engine."""

    def work(answer: Callable[[int, int], Outcome] = lambda repeat, case: outcomes.decoded(case)) -> None:
        while lease := claim_shard(worker=worker):
            shard = Shard.objects.select_related("repeat").get(pk=lease.id)
            assert bind_bucket(run_id=shard.repeat.run_id, bucket=engine_process.bucket)
            came = [answer(shard.repeat.index, case) for case in range(shard.first, shard.last + 1)]
            record_outcomes(lease=lease, process=engine_process, outcomes=came)
            finish_shard(lease=lease)

    return work


@pytest.fixture(autouse=True)
def verdicts_need_evidence_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge every release of these tests a second time: from its evidence as bytes, where any query fails."""
    judge = verdict_check.judge_release

    def judge_twice(gates: Iterable[GateEvidence], policy: PolicySettings) -> dict[str, Any]:
        Evidence(evidence := io.BytesIO()).dump((list(gates), policy))
        with connection.execute_wrapper(no_query):
            first, second = (judge(*pickle.loads(evidence.getvalue())) for _ in range(2))  # noqa: S301
        assert canonical_json(first) == canonical_json(second)
        return first

    monkeypatch.setattr(verdict_check, "judge_release", judge_twice)


class Evidence(pickle.Pickler):
    def persistent_id(self, obj: Any) -> None:
        assert not isinstance(obj, Model | QuerySet), f"{obj!r} is no evidence"


def no_query(execute: Any, sql: str, *_: Any) -> Any:
    raise AssertionError(f"a verdict was taken by a query: {sql}")
