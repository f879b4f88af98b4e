"""Probes by workers: what a planted engine does is found, and a worker that is lost costs no answer."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models.functions import Now

from evalboard.contract.probe import Probe
from runs.catalogue import create_endpoint, store_default_profiles
from runs.models import EndpointRecord, EngineProcess, ProbeRecord, ResponseRecord, RunRecord, WorkerRecord
from runs.probes import create_probe
from runs.probes.read import probe_calls, probe_detail
from tests.worker.conftest import Join, Start, Wait, kill_engine, kill_group, stop_after

pytestmark = pytest.mark.django_db
as_processes = pytest.mark.django_db(transaction=True)

NewProbe = Callable[..., ProbeRecord]
FORTY_COPIES = {"prompts": ["say blue"], "copies": 40, "load": 0}


@pytest.fixture
def new_probe(settings: Any) -> NewProbe:
    def ask(kind: str, *, profile: str = "pinned", **parameters: Any) -> ProbeRecord:
        store_default_profiles()
        if not EndpointRecord.objects.exists():
            path = str(settings.MODEL_ROOTS[0] / "scripted")
            create_endpoint(slug="scripted", model_path=path, dtype="float32", line="scripted")
        return create_probe(endpoint="scripted", kind=kind, profile=profile, parameters=parameters)

    return ask


@pytest.fixture
def found(work_until: Wait) -> Callable[[ProbeRecord], Probe]:
    """Have the workers of this process ask until a probe has ended."""

    def wait(probe: ProbeRecord) -> Probe:
        work_until(lambda: probe_detail(probe.pk).is_terminal, "the probe has ended")
        return probe_detail(probe.pk)

    return wait


Found = Callable[[ProbeRecord], Probe]


def test_a_seed_that_is_honoured_is_found_before_the_shards_that_wait(
    new_run: Callable[..., RunRecord], new_probe: NewProbe, found: Found, join_worker: Join
) -> None:
    new_run(["say blue"] * 40, repeats=1)
    probe = new_probe("seed", prompts=["draw abcdefgh", "draw stuvwxyz"], calls_per_group=5, max_tokens=12)
    join_worker(SCRIPTED_SECONDS="0.05")
    detail = found(probe)
    assert ResponseRecord.objects.count() < 40
    assert (detail.status, detail.progress.n_done, detail.progress.n_total) == ("finished", 22, 22)
    assert detail.finding.state == "honoured"
    calls = probe_calls(probe.pk)
    assert {len(call.text) for call in calls if call.group != "greedy"} == {11}
    texts = {(call.prompt, call.seed, call.text) for call in calls if call.group == "same"}
    assert len(texts) == 2  # one for each prompt
    assert all("".join(call.tokens) == call.text + "⟨end⟩" for call in calls)


def test_a_batch_that_moves_answers_is_found_where_requests_share_steps(
    new_probe: NewProbe, found: Found, join_worker: Join
) -> None:
    join_worker(SCRIPTED_RECORDED=json.dumps({"2": {"word": "bled"}, "4": {"word": "bled"}}))
    together = found(new_probe("batch", profile="fast", **FORTY_COPIES))
    assert together.finding.state == "variant"
    assert max(call.batch_max or 0 for call in probe_calls(int(together.id))) == 8  # vLLM's limit under this profile
    alone = found(new_probe("batch", **FORTY_COPIES))
    assert alone.finding.state == "invariant"
    assert {call.batch_max for call in probe_calls(int(alone.id))} == {1}


def test_routing_asks_two_workers_and_finds_that_they_are_two(
    new_probe: NewProbe, found: Found, join_worker: Join, work_until: Wait
) -> None:
    join_worker()
    join_worker(SCRIPTED_DTYPE="bfloat16")
    work_until(lambda: WorkerRecord.objects.count() == 2, "both workers are there")
    probe = new_probe("routing", calls=3)
    detail = found(probe)
    assert (detail.status, detail.progress.n_done, detail.progress.n_total) == ("finished", 6, 6)
    assert set(detail.workers) == set(WorkerRecord.objects.values_list("name", flat=True))
    assert len({(call.worker, call.fingerprint) for call in probe_calls(probe.pk)}) == 2
    assert detail.finding.state == "several"
    one = new_probe("routing", calls=3)
    assert {worker.pk for worker in WorkerRecord.objects.all()} == set(one.waits_for)


@pytest.mark.nightly
@as_processes
def test_a_worker_killed_between_rounds_is_followed_by_one_that_goes_on(
    new_probe: NewProbe, found: Found, start_worker: Start, wait_until: Wait, join_worker: Join
) -> None:
    probe = new_probe("batch", **FORTY_COPIES)
    first = start_worker(SCRIPTED_SECONDS="0.1")
    wait_until(lambda: probe_detail(probe.pk).progress.n_done > 4, "two rounds are recorded")
    kill_group(first)
    kept = probe_calls(probe.pk)
    join_worker()
    detail = found(probe)
    calls = probe_calls(probe.pk)
    assert calls[: len(kept)] == kept
    assert {call.worker for call in calls[: len(kept)]}.isdisjoint(call.worker for call in calls[len(kept) :])
    assert (detail.progress.n_done, detail.progress.n_total, len(detail.workers)) == (40, 40, 2)
    assert ProbeRecord.objects.get().attempt == 2


def test_a_worker_that_is_told_to_stop_gives_its_probe_back(new_probe: NewProbe, join_worker: Join) -> None:
    probe = new_probe("batch", **FORTY_COPIES)
    join_worker(on_answer=stop_after(20)).work()
    probe.refresh_from_db()
    assert (probe.status, probe.owner_id, probe.error) == ("queued", None, "The worker was stopped.")
    assert not any(call["error"] for call in probe.answers)
    assert 0 < len(probe.answers) < 40


@pytest.mark.nightly
def test_an_engine_that_has_died_costs_nothing_and_one_that_always_dies_fails_the_probe(
    new_probe: NewProbe, found: Found, join_worker: Join
) -> None:
    worker = join_worker()
    first = new_probe("canary", prompts=["say blue"])
    assert found(first).status == "finished"
    [engine] = worker.engines
    kill_engine(engine)
    second = new_probe("canary", prompts=["say blue"])
    assert found(second).status == "finished"
    assert ProbeRecord.objects.get(pk=second.pk).attempt == 1
    deadly = new_probe("canary", prompts=["say blue", "die now"])
    detail = found(deadly)
    assert (detail.status, detail.finding, detail.progress.n_done) == ("failed", None, 1)
    assert detail.error.startswith("It was begun 3 times and never came to an end. The engine was ended by SIGKILL")
    assert "killed by its prompt" in detail.error
    assert not EngineProcess.objects.filter(stopped_at=None).exists()


def test_a_profile_that_no_worker_can_honour_is_refused_in_words(
    new_probe: NewProbe, found: Found, join_worker: Join
) -> None:
    probe = new_probe("seed", profile="invariant")
    join_worker()
    detail = found(probe)
    assert (detail.status, detail.progress.n_done) == ("failed", 0)
    assert detail.error.startswith("No worker can honour the profile invariant. vLLM has batch-invariant kernels only")


def test_a_verification_goes_from_its_runs_to_its_word(
    new_run: Callable[..., RunRecord], join_worker: Join, settings: Any
) -> None:
    run = new_run([f"say {letter * 6}" for letter in "abcdefghijkl"], repeats=1)
    for slug, dtype in (("asked", "float32"), ("second", "bfloat16")):
        create_endpoint(slug=slug, model_path=str(settings.MODEL_ROOTS[0] / "scripted"), dtype=dtype, line="scripted")
    named = {"suite": run.suite_version.suite.slug, "reference": run.endpoint.slug}
    probe = create_probe(endpoint="asked", kind="verify", profile="pinned", parameters=named)
    worker = join_worker(SCRIPTED_RECORDED=json.dumps({"bfloat16": {"drift": 1}}))
    while not (detail := probe_detail(probe.pk)).is_terminal:
        ProbeRecord.objects.update(next_at=Now())  # it has waited long enough for what it asked for
        worker.work()
    assert (detail.error, [each.forced_status for each in detail.sets]) == (None, ["finished"] * 3)
    # Bit for bit the reference's; and by a millionth of a nat the other dtype lies in every answer.
    assert detail.finding.state == "same_stack"
    bands = [detail.finding.numbers[name]["mean"]["value"] for name in ("endpoint", "control", "numerics")]
    assert (bands[:2], bands[2] > 0) == ([0, 0], True)
