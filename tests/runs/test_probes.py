"""Probes: what may be asked for, who may work on one, who may still write, and what comes of it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from evalboard.core.errors import InvalidInput, LeaseLost, NotFound, ProfileRefused
from evalboard.core.probes import CANARY_CHANGES, ProbeExchange, judge_canary_probe, judge_routing_probe
from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile, store_default_profiles
from runs.models import EndpointRecord, EngineProcess, ProbeRecord, ProfileRecord, RunRecord, WorkerRecord
from runs.probes import PROBES, claim_probe, create_probe, finish_probe, record_calls
from runs.probes import read as selectors
from runs.suites import push_suite
from runs.sweep import reconcile, release_dead_workers
from runs.work import Beat, Lease, beat, stop_worker
from tests import outcomes

NewWorker = Callable[..., WorkerRecord]
NewProbe = Callable[..., ProbeRecord]


@pytest.fixture
def new_probe(endpoint: str, profile: str) -> NewProbe:
    def ask(kind: str = "seed", **parameters: Any) -> ProbeRecord:
        known: dict[str, dict[str, Any]] = {
            "seed": {"prompts": ["Name a colour."], "calls_per_group": 2},
            "canary": {"prompts": 2},
        }
        return create_probe(
            endpoint=endpoint, kind=kind, profile=profile, parameters={**known.get(kind, {}), **parameters}
        )

    return ask


@pytest.fixture
def probe(new_probe: NewProbe) -> ProbeRecord:
    return new_probe()


def claimed(worker: WorkerRecord) -> Lease:
    lease = claim_probe(worker=worker)
    assert lease is not None
    return lease


def expire(lease: Lease) -> None:
    ProbeRecord.objects.filter(pk=lease.id).update(lease_until=Now())


def answer(lease: Lease, process: EngineProcess | None, **changes: Any) -> None:
    """Record every call that is left to this worker, as its engine would have answered."""
    who: dict[str, Any] = {"worker": lease.worker_id, "engine_process": process and process.pk}
    if process is not None:
        who |= {"bucket": process.bucket_id, "fingerprint": process.bucket.fingerprint.digest}
    said = {"token_ids": (1, 2), "text": "blue", "finish_reason": "stop", "top": ((1, -0.5), (2, -1.5), (3, -2.5))}
    for calls in selectors.probe_work(lease.id, worker_id=lease.worker_id).rounds:
        record_calls(lease=lease, calls=[replace(call, **{**said, **who, **changes}) for call in calls])


def served(worker: WorkerRecord, process: EngineProcess, **changes: Any) -> None:
    lease = claimed(worker)
    answer(lease, process, **changes)
    finish_probe(lease=lease)


def stored(probe: ProbeRecord) -> ProbeRecord:
    probe.refresh_from_db()
    return probe


@pytest.fixture
def default_profiles(db: None) -> None:
    store_default_profiles()


@pytest.mark.usefixtures("default_profiles")
@pytest.mark.parametrize(
    ("kind", "profile"), [("seed", "pinned"), ("batch", "fast"), ("routing", "pinned"), ("canary", "pinned")]
)
def test_a_probe_has_complete_parameters_and_the_profile_that_fits(endpoint: str, kind: str, profile: str) -> None:
    probe = create_probe(endpoint=endpoint, kind=kind, parameters={})
    assert (probe.profile.slug, probe.status, probe.answers, probe.finding) == (profile, "queued", [], None)
    detail = selectors.probe_detail(probe.pk)
    assert (detail.progress.n_done, detail.progress.n_total > 0) == (0, True)
    assert (detail.profile_name, detail.finding, detail.is_terminal) == (profile, None, False)
    assert detail.prompts


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"kind": "colour"}, "kind"),
        ({"parameters": {"calls": 3}}, "parameters.calls"),
        ({"parameters": {"max_tokens": 100}}, "parameters.max_tokens"),  # of a context of 100
        ({"endpoint": "log"}, "endpoint"),
        ({"profile": "log"}, "profile"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(
    endpoint: str, profile: str, asked: dict[str, Any], field: str
) -> None:
    EndpointRecord.objects.filter(slug=endpoint).update(max_model_len=100)
    EndpointRecord.objects.create(slug="log", engine="imported", model_repo="a/b", dtype="float32", line="a")
    ProfileRecord.objects.create(slug="log", title="", settings={"batch_class": "observed"}, digest="d")
    known = {"endpoint": endpoint, "profile": profile, "kind": "seed", "parameters": {}}
    with pytest.raises(InvalidInput) as refused:
        create_probe(**{**known, **asked})
    assert set(refused.value.fields) == {field}
    assert not ProbeRecord.objects.exists()


def test_names_that_are_not_there_are_not_found(endpoint: str, profile: str) -> None:
    for changes in ({"endpoint": "sky"}, {"profile": "sky"}, {"kind": "canary", "parameters": {"suite": "sky"}}):
        known: dict[str, Any] = {"endpoint": endpoint, "profile": profile, "kind": "seed", "parameters": {}}
        with pytest.raises(NotFound, match="sky"):
            create_probe(**{**known, **changes})


def test_a_profile_that_no_living_worker_can_honour_is_refused(endpoint: str, worker: WorkerRecord) -> None:
    create_profile(slug="invariant", title="", settings=DEFAULT_PROFILES["invariant"]["settings"])
    with pytest.raises(ProfileRefused):
        create_probe(endpoint=endpoint, kind="seed", profile="invariant", parameters={})
    WorkerRecord.objects.update(stopped_at=Now())
    probe = create_probe(endpoint=endpoint, kind="seed", profile="invariant", parameters={})
    beat(worker=worker)
    PROBES.refuse(lease=claimed(worker), reason="no kernels")
    assert (stored(probe).status, "this worker decodes on a CPU" in probe.error) == ("failed", True)


def test_a_canary_keeps_to_the_version_of_its_suite(suite: str, new_probe: NewProbe, worker: WorkerRecord) -> None:
    probe = new_probe("canary", prompts=2)
    asked = create_probe(endpoint=probe.endpoint.slug, kind="canary", profile="pinned", parameters={"suite": suite})
    push_suite(document=outcomes.suite_document(slug=suite, n_cases=3))
    work = selectors.probe_work(asked.pk, worker_id=worker.pk)
    assert asked.parameters["suite_version"] == 1
    assert len(work.prompts) == len(work.rounds) == 30  # no reference set, so its first cases
    assert work.serving.max_tokens == 1


@pytest.mark.django_db(transaction=True)
def test_a_probe_that_many_workers_want_goes_to_one(new_probe: NewProbe, new_worker: NewWorker) -> None:
    asked = {new_probe().pk for _ in range(6)}

    def claim_all(worker: WorkerRecord) -> list[int]:
        taken = []
        while lease := claim_probe(worker=worker):
            taken.append(lease.id)
        connection.close()
        return taken

    with ThreadPoolExecutor(4) as pool:
        taken = [one for found in pool.map(claim_all, [new_worker(f"w{n}") for n in range(4)]) for one in found]
    assert sorted(taken) == sorted(asked)


def test_other_pools_and_probes_that_are_left_alone_are_not_claimed(probe: ProbeRecord, new_worker: NewWorker) -> None:
    assert claim_probe(worker=new_worker("far", pool="gpu")) is None
    assert claim_probe(worker=new_worker("near"), left_alone=frozenset({probe.pk})) is None
    assert claim_probe(worker=new_worker("idle"), left_alone=frozenset({probe.pk + 1})) is not None


def test_answers_are_kept_in_order_and_lead_to_a_finding(
    probe: ProbeRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    lease = claimed(worker)
    answer(lease, engine_process, text="bl\0ue")
    detail = selectors.probe_detail(probe.pk)
    assert (detail.progress.n_done, detail.progress.n_total, detail.finding) == (5, 5, None)
    finish_probe(lease=lease)
    row, *others = selectors.sortable_probes(endpoint="local", kind="seed").rows(limit=5)
    assert (others, row.status, row.is_terminal, stored(probe).waits_for) == ([], "finished", True, [])
    assert row.finding is not None
    assert row.finding.sentence
    detail = selectors.probe_detail(probe.pk)
    assert detail.finding is not None
    assert (detail.finding.state, detail.workers) == (row.finding.state, ("first",))
    calls = selectors.probe_calls(probe.pk)
    assert {call.text for call in calls} == {"bl\ufffdue"}
    assert {call.tokens for call in calls} == {("⟨token 1⟩", "⟨token 2⟩")}  # nobody stored a vocabulary
    assert sorted(call.group for call in calls) == ["different", "different", "greedy", "same", "same"]
    assert claim_probe(worker=worker) is None


def test_a_probe_without_any_answer_has_failed_in_the_engine_s_words(
    probe: ProbeRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    lease = claimed(worker)
    answer(lease, engine_process, token_ids=(), text="", error="out_of_memory: no\0memory")
    finish_probe(lease=lease)
    assert (stored(probe).status, probe.finding, probe.error) == ("failed", None, "out_of_memory: no\ufffdmemory")


def test_a_round_that_is_sent_again_after_a_lost_answer_is_stored_once(
    probe: ProbeRecord, worker: WorkerRecord
) -> None:
    lease = claimed(worker)
    rounds = selectors.probe_work(lease.id, worker_id=worker.pk).rounds[:2]
    for calls in (rounds[0], rounds[0], rounds[1], rounds[0]):
        record_calls(lease=lease, calls=[replace(call, worker=worker.pk, engine_process=1) for call in calls])
    answers = stored(probe).answers
    assert [each["round"] for each in answers] == [0] * len(rounds[0]) + [1] * len(rounds[1])


def test_recording_and_heartbeats_renew_the_lease(probe: ProbeRecord, worker: WorkerRecord) -> None:
    lease = claimed(worker)
    expire(lease)
    assert PROBES.renew(lease=lease) == Beat(is_held=True, is_cancel_wanted=False)
    reconcile()
    expire(lease)
    record_calls(lease=lease, calls=[ProbeExchange(prompt=0, group="same")])
    reconcile()
    assert stored(probe).status == "running"


def test_an_attempt_that_lost_its_probe_can_write_nothing(probe: ProbeRecord, new_worker: NewWorker) -> None:
    old = claimed(new_worker("slow"))
    record_calls(lease=old, calls=[ProbeExchange(prompt=0, group="same", round=0, engine_process=1)])
    expire(old)
    reconcile()
    new = claimed(new_worker("quick"))
    assert (new.id, new.attempt) == (old.id, 2)
    before = ProbeRecord.objects.values().get(pk=probe.pk)
    with pytest.raises(LeaseLost):
        record_calls(lease=old, calls=[ProbeExchange(prompt=0, group="same")])
    with pytest.raises(LeaseLost):
        finish_probe(lease=old)
    PROBES.refuse(lease=old, reason="late")
    PROBES.release(lease=old, reason="late", may_fail=True)
    assert not PROBES.renew(lease=old).is_held
    assert ProbeRecord.objects.values().get(pk=probe.pk) == before
    assert len(before["answers"]) == 1  # what the first attempt had stored is kept


def test_a_probe_that_loses_its_worker_three_times_has_failed(probe: ProbeRecord, worker: WorkerRecord) -> None:
    for attempt in (1, 2, 3):
        lease = claimed(worker)
        assert lease.attempt == attempt
        expire(lease)
        reconcile()
    assert claim_probe(worker=worker) is None
    assert stored(probe).status == "failed"
    assert probe.error.startswith("It was begun 3 times and never came to an end. Its worker was not heard of")


def test_probes_of_a_process_that_is_gone_are_taken_back_at_once(new_probe: NewProbe, new_worker: NewWorker) -> None:
    owners = [new_worker(name, pid=pid, place="here", process_started=1) for name, pid in (("gone", 7), ("alive", 8))]
    for _ in owners:
        new_probe()
    leases = [claimed(owner) for owner in owners]
    release_dead_workers(place="here", is_gone=lambda pid, started: pid != 8)
    assert [PROBES.renew(lease=lease).is_held for lease in leases] == [False, True]


@pytest.mark.django_db(transaction=True)
def test_asking_and_giving_back_rings_the_pool(
    new_probe: NewProbe, new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung: list[tuple[str, int]] = []
    monkeypatch.setattr("runs.work.dispatch.ring_or_log", lambda pool, *, n_shards: rung.append((pool, n_shards)))
    worker, _ = new_worker("first"), new_worker("second")
    new_probe()
    PROBES.release(lease=claimed(worker), reason="The worker was stopped.", may_fail=False)
    new_probe("routing")
    assert rung == [("default", 1), ("default", 1), ("default", 2)]


def test_routing_asks_every_worker_that_is_able_once(
    new_probe: NewProbe,
    new_worker: NewWorker,
    new_engine_process: Callable[..., EngineProcess],
) -> None:
    one, other = new_worker("one"), new_worker("other")
    new_worker("far", pool="gpu")
    resting, stopped, silent = new_worker("resting"), new_worker("stopped"), new_worker("silent")
    WorkerRecord.objects.filter(pk=resting.pk).update(rests_until=Now() + timedelta(hours=1))
    WorkerRecord.objects.filter(pk=stopped.pk).update(stopped_at=Now())
    WorkerRecord.objects.filter(pk=silent.pk).update(seen_at=Now() - timedelta(hours=1))
    process = new_engine_process()  # of the worker "first", which is able too
    probe = new_probe("routing", calls=2)
    first = process.worker
    assert set(probe.waits_for) == {one.pk, other.pk, first.pk}
    late = new_worker("late")
    for n_done, worker in enumerate((one, first), start=1):
        served(worker, process)
        assert (stored(probe).status, probe.error, len(probe.answers)) == ("queued", "", 2 * n_done)
        assert claim_probe(worker=worker) is None
    assert claim_probe(worker=late) is None
    detail = selectors.probe_detail(probe.pk)
    assert (detail.progress.n_done, detail.progress.n_total, detail.workers, detail.waits_for) == (
        4,
        6,
        ("one", "first"),
        ("other",),
    )
    served(other, process)
    assert (stored(probe).status, probe.finding and probe.finding["numbers"]["left_out"]) == ("finished", [])
    assert (len(probe.answers), probe.attempt) == (6, 3)


def test_routing_goes_on_without_workers_that_are_gone_and_names_them(
    new_probe: NewProbe, new_worker: NewWorker, engine_process: EngineProcess, worker: WorkerRecord
) -> None:
    stopped, silent, broken, lost = (new_worker(name) for name in ("stopped", "silent", "broken", "lost"))
    probe = new_probe("routing", calls=8)
    served(worker, engine_process)
    PROBES.release(lease=claimed(broken), reason="The engine does not start.", may_fail=True)
    assert (stored(probe).status, broken.pk in probe.waits_for) == ("queued", False)
    expire(claimed(lost))
    stop_worker(worker=stopped)
    WorkerRecord.objects.filter(pk=silent.pk).update(seen_at=Now() - timedelta(hours=1))
    reconcile()
    assert (stored(probe).status, probe.waits_for) == ("queued", [])
    lease = claimed(worker)  # nobody is left to ask: whoever comes ends it
    assert selectors.probe_work(probe.pk, worker_id=worker.pk).rounds == ()
    finish_probe(lease=lease)
    assert (stored(probe).status, selectors.probe_detail(probe.pk).progress.n_done) == ("finished", 8)
    assert probe.finding is not None
    why = {each["worker"]: each["why"] for each in probe.finding["numbers"]["left_out"]}
    assert probe.finding["state"] == "one"
    assert why == {
        "broken": "The engine does not start.",
        "lost": "Its worker was not heard of for the length of a lease.",
        "stopped": "It has stopped.",
        "silent": "It was not heard of for the length of a lease.",
    }


def test_where_no_worker_answers_routing_asks_whoever_comes_first(
    new_probe: NewProbe, new_worker: NewWorker, engine_process: EngineProcess, worker: WorkerRecord
) -> None:
    stop_worker(worker=worker)
    probe = new_probe("routing")
    assert probe.waits_for == []
    beat(worker=worker)
    served(worker, engine_process)
    assert stored(probe).status == "finished"
    left = new_probe("routing")
    stop_worker(worker=worker)
    reconcile()
    served(new_worker("its successor"), engine_process)
    assert (stored(left).status, selectors.probe_detail(left.pk).workers) == ("finished", ("its successor",))


def test_routing_is_told_the_fingerprint_of_the_endpoint_s_last_run(
    run: RunRecord, serve: Callable[..., None], new_probe: NewProbe, engine_process: EngineProcess,
    worker: WorkerRecord, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    told = []
    find = judge_routing_probe

    def watched(calls: Any, *, last_fingerprint: str | None) -> Any:
        told.append(last_fingerprint)
        return find(calls, last_fingerprint=last_fingerprint)

    monkeypatch.setattr("runs.probes.probes.judge_routing_probe", watched)
    new_probe("routing", calls=1)
    served(worker, engine_process)
    serve()
    new_probe("routing", calls=1)
    served(worker, engine_process)
    assert told == [None, engine_process.bucket.fingerprint.digest]
    finding = ProbeRecord.objects.latest("pk").finding
    assert finding is not None
    assert "1 answer of 1 worker came from backend A, as before." in finding["sentence"]


def test_a_canary_is_held_against_those_before_it_that_asked_the_same(
    new_probe: NewProbe, worker: WorkerRecord, engine_process: EngineProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    find = judge_canary_probe

    def watched(now: Any, earlier: Any, **more: Any) -> Any:
        seen.append([calls[0].text for calls in earlier])
        return find(now, earlier, **more)

    monkeypatch.setattr("runs.probes.probes.judge_canary_probe", watched)
    for text in ("first", "second"):
        new_probe("canary")
        served(worker, engine_process, text=text)
    new_probe("canary", top_k=7)
    served(worker, engine_process, text="asked otherwise")
    new_probe("canary")
    served(worker, engine_process, text="third")
    assert seen == [[], ["first"], [], ["first", "second"]]
    changed = ProbeRecord.objects.get(answers__0__text="second")
    state = sorted(CANARY_CHANGES)[0]
    ProbeRecord.objects.filter(pk=changed.pk).update(finding={"state": state, "sentence": "", "numbers": {}})
    new_probe("canary")
    served(worker, engine_process, text="fourth")
    assert seen[-1] == ["second", "third"]  # what was before the change is no longer there


def test_the_state_of_a_probe_changes_with_it(
    probe: ProbeRecord, worker: WorkerRecord, engine_process: EngineProcess
) -> None:
    states = [selectors.probe_state(probe.pk)]
    lease = claimed(worker)
    states.append(selectors.probe_state(probe.pk))
    PROBES.renew(lease=lease)
    assert selectors.probe_state(probe.pk) == states[-1]
    answer(lease, engine_process)
    states.append(selectors.probe_state(probe.pk))
    finish_probe(lease=lease)
    states.append(selectors.probe_state(probe.pk))
    assert len(set(states)) == 4
    for ask in (selectors.probe_state, selectors.probe_detail, selectors.probe_calls):
        with pytest.raises(NotFound, match="no probe 999"):
            ask(999)


def test_probes_are_listed_newest_first(new_probe: NewProbe, django_assert_num_queries: Callable[[int], Any]) -> None:
    asked = [new_probe(kind).pk for kind in ("seed", "routing", "seed", "canary", "seed")]
    with django_assert_num_queries(1):
        rows = selectors.sortable_probes().rows(limit=50)
    assert [int(row.id) for row in rows] == asked[::-1]
    assert [int(row.id) for row in selectors.sortable_probes().rows(after=asked[3], limit=2)] == [asked[2], asked[1]]
    assert [int(row.id) for row in selectors.sortable_probes().rows(before=asked[0], limit=2)] == [asked[2], asked[1]]
    assert [int(row.id) for row in selectors.sortable_probes(kind="seed").rows(limit=2)] == [asked[4], asked[2]]
    assert selectors.sortable_probes(endpoint="elsewhere").rows(limit=2) == ()
