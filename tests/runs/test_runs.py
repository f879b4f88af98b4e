"""Runs: created whole or not at all, extended, cancelled, deleted."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalboard.core.errors import Conflict, InvalidInput, NotFound, ProfileRefused
from evalboard.core.profile import DEFAULT_PROFILES, OBSERVED
from runs.catalogue import create_endpoint, create_profile
from runs.models import (
    DeletionRecord,
    EndpointRecord,
    EngineProcess,
    ProfileRecord,
    RepeatRecord,
    ResponseRecord,
    RunRecord,
    Scorer,
    Shard,
    TraceBlock,
    WorkerRecord,
)
from runs.run import MAX_LABELS, add_repeats, cancel_run, delete_run
from runs.run.runs import find_order, shard_size
from runs.sweep import reconcile
from runs.work import cancel_shard, claim_shard, record_outcomes, renew_shard
from tests import build, outcomes


def test_a_run_is_written_with_repeats_and_shards_that_cover_every_case_once(run: RunRecord) -> None:
    for repeat in run.repeats.all():
        slices = list(repeat.shards.order_by("first").values_list("first", "last"))
        covered = [index for first, last in slices for index in range(first, last + 1)]
        assert covered == list(range(30))
    assert run.status == "queued"


@pytest.mark.parametrize(
    ("n_cases", "group_size", "size"),
    [(24, None, 12), (800, None, 25), (100_000, None, 100), (24, 8, 16), (5, None, 12)],
)
def test_shards_hold_whole_groups(n_cases: int, group_size: int | None, size: int) -> None:
    assert shard_size(n_cases, group_size) == size


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"suite": "nowhere"}, NotFound),
        ({"suite_version": 9}, NotFound),
        ({"endpoint": "nowhere"}, NotFound),
        ({"profile": "nowhere"}, NotFound),
        ({"repeats": 0}, InvalidInput),
        ({"repeats": 101}, InvalidInput),
        ({"labels": {"commit": 5}}, InvalidInput),
        ({"labels": {"k": "a\0b"}}, InvalidInput),
        ({"model": {"path": "/etc"}}, InvalidInput),
        ({"model": {"path": "a", "repo": "b/c"}}, InvalidInput),
        ({"model": {"repo": "b/c", "revision": "main"}}, InvalidInput),
        ({"model": {"url": "x"}}, InvalidInput),
    ],
)
def test_a_run_that_cannot_be_is_refused_and_leaves_nothing(
    new_run: Callable[..., RunRecord], change: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        new_run(**change)
    assert not RunRecord.objects.exists()
    assert not Shard.objects.exists()


def test_a_model_path_may_not_climb_out_of_its_root(new_run: Callable[..., RunRecord], settings: Any) -> None:
    root = settings.MODEL_ROOTS[0]
    new_run(model={"path": str(root / "other")})
    with pytest.raises(InvalidInput):
        new_run(model={"path": str(root / ".." / ".." / "elsewhere")})


def test_the_invariant_profile_is_refused_where_every_worker_is_a_cpu(
    new_run: Callable[..., RunRecord], worker: WorkerRecord
) -> None:
    create_profile(slug="invariant", title="", settings=DEFAULT_PROFILES["invariant"]["settings"])
    with pytest.raises(ProfileRefused, match="invariant"):
        new_run(profile="invariant")
    assert not RunRecord.objects.exists()


def test_a_run_whose_answers_fill_the_endpoints_context_is_refused(
    new_run: Callable[..., RunRecord], endpoint: str
) -> None:
    EndpointRecord.objects.update(max_model_len=24)
    with pytest.raises(InvalidInput) as refused:
        new_run()
    assert "24 tokens" in refused.value.fields["suite"]


def test_added_repeats_send_a_finished_run_back_to_work(run: RunRecord) -> None:
    RunRecord.objects.filter(pk=run.pk).update(status="finished")
    again = add_repeats(run_id=run.pk, n=3)
    assert again.status == "queued"
    assert list(again.repeats.values_list("index", flat=True)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("n", [0, -1, 99])
def test_a_wrong_number_of_added_repeats_is_refused(run: RunRecord, n: int) -> None:
    with pytest.raises(InvalidInput):
        add_repeats(run_id=run.pk, n=n)


def test_cancelling_a_queued_run_ends_it_at_once(run: RunRecord, worker: WorkerRecord) -> None:
    cancel_run(run_id=run.pk)
    run.refresh_from_db()
    assert run.status == "cancelled"
    assert claim_shard(worker=worker) is None


def test_cancelling_a_running_run_waits_for_its_worker(run: RunRecord, worker: WorkerRecord) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    cancel_run(run_id=run.pk)
    run.refresh_from_db()
    assert run.status == "running"
    assert renew_shard(lease=lease).is_cancel_wanted
    cancel_shard(lease=lease)
    run.refresh_from_db()
    assert run.status == "cancelled"
    assert set(RepeatRecord.objects.values_list("status", flat=True)) == {"cancelled"}


def test_a_cancelled_run_whose_worker_died_is_ended_by_the_reconciler(run: RunRecord, worker: WorkerRecord) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    cancel_run(run_id=run.pk)
    Shard.objects.filter(pk=lease.id).update(lease_until="2020-01-01T00:00:00Z")
    reconcile()
    run.refresh_from_db()
    assert run.status == "cancelled"


@pytest.mark.parametrize("status", ["finished", "incomplete", "failed"])
def test_a_run_that_has_ended_stays_as_it_ended(run: RunRecord, status: str) -> None:
    RunRecord.objects.filter(pk=run.pk).update(status=status)
    with pytest.raises(Conflict):
        cancel_run(run_id=run.pk)
    run.refresh_from_db()
    assert run.status == status


def test_deleting_a_run_takes_its_responses_and_traces_along(
    run: RunRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    record_outcomes(lease=lease, process=engine_process, outcomes=[outcomes.decoded(0)])
    with pytest.raises(Conflict):
        delete_run(run_id=run.pk)
    RunRecord.objects.filter(pk=run.pk).update(status="incomplete")
    delete_run(run_id=run.pk)
    assert not RunRecord.objects.exists()
    assert not ResponseRecord.objects.exists()
    assert not TraceBlock.objects.exists()


def test_deleting_a_run_loads_no_trace(run: RunRecord, worker: WorkerRecord, engine_process: EngineProcess) -> None:
    lease = claim_shard(worker=worker)
    assert lease is not None
    record_outcomes(lease=lease, process=engine_process, outcomes=[outcomes.decoded(0)])
    RunRecord.objects.filter(pk=run.pk).update(status="incomplete")
    with CaptureQueriesContext(connection) as queries:
        delete_run(run_id=run.pk)
    assert not [query["sql"] for query in queries if '"runs_traceblock"."data"' in query["sql"]]


def test_a_run_that_does_not_exist_is_said_to_be_missing(db: None) -> None:
    for act in (cancel_run, delete_run):
        with pytest.raises(NotFound, match="no run 77"):
            act(run_id=77)


def test_what_a_run_may_not_ask_for_is_named_by_its_field(db: None) -> None:
    version = build.suite()
    build.profile()
    build.endpoint()
    create_endpoint(slug="theirs", engine="openai", base_url="http://127.0.0.1:1/v1", model_name="m", line="m")
    sampled = build.profile("sampled")

    def wrong(**changes: Any) -> list[str]:
        try:
            find_order(**{"suite": "colours", "endpoint": "theirs", "profile": "pinned", **changes})
        except InvalidInput as refused:
            return list(refused.fields)
        return []

    pinned = ProfileRecord.objects.get(slug="pinned")
    default = pinned.settings["sampling"]["seed"]
    for changes, fields in (
        ({}, []),
        ({"endpoint": "local", "is_restarted": True}, []),
        ({"is_restarted": True}, ["is_restarted"]),
        ({"model": {"path": "a"}}, ["model"]),
        ({"endpoint": "local", "model": {}}, ["model"]),
        ({"priority": "urgent"}, ["priority"]),
        ({"repeats": 100}, []),
        ({"is_shuffled": True}, []),
        ({"endpoint": "local", "seed": default}, []),
        ({"endpoint": "local", "seed": default + 1}, ["seed"]),  # at temperature 0 it changes nothing
        ({"endpoint": "local", "profile": sampled, "seed": default + 1}, []),
        ({"seed": default + 1}, []),  # nobody knows what the server does with it
        ({"seed": -1}, ["seed"]),
        ({"seed": 2**63}, ["seed"]),
        ({"labels": {str(n): "" for n in range(MAX_LABELS)}}, []),
        ({"labels": {str(n): "" for n in range(MAX_LABELS + 1)}}, ["labels"]),
        ({"labels": {"k" * 40: "v" * 200}}, []),
        ({"labels": {"k" * 41: "v"}}, [f"labels.{'k' * 41}"]),
        ({"labels": {"": "v"}}, ["labels."]),
        ({"labels": {"k": "v" * 201}}, ["labels.k"]),
    ):
        assert wrong(**changes) == fields, changes
    for batch_class, changes, fields in (
        ("fixed", {"endpoint": "local", "is_shuffled": True}, ["is_shuffled"]),
        ("fixed", {}, ["profile"]),
        ("invariant", {}, ["profile"]),
        ("mixed", {}, []),
        (OBSERVED, {"endpoint": "local"}, ["profile"]),
    ):
        other = ProfileRecord(pk=pinned.pk, slug="pinned", settings={**pinned.settings, "batch_class": batch_class})
        assert wrong(profile=other, **changes) == fields, batch_class
    gone = DeletionRecord.objects.create(what="case", suite_version=version, why="", n_responses=0, n_bytes=0)
    assert wrong() == []  # a rule deleted answers, and no case
    DeletionRecord.objects.filter(pk=gone.pk).update(case_id="sky")
    assert wrong() == ["suite"]
    DeletionRecord.objects.all().delete()
    Scorer.objects.filter(pk=version.scorer_id).update(spec={"default": {"kind": "recorded"}, "cases": {}})
    assert wrong() == ["suite"]  # its scores came with logs
