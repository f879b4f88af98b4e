"""Certificates of nodes: what gives one, what ends it, and what is said of a run that needs one and has none."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from evalboard.contract.stack import Certificate
from evalboard.core.probes import ProbeExchange
from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile
from runs.models import (
    BucketRecord,
    EngineProcess,
    FingerprintRecord,
    Model,
    ProbeRecord,
    ProfileRecord,
    RunRecord,
    WorkerRecord,
)
from runs.probes import claim_probe
from runs.probes.probes import go_on_without_the_gone
from runs.probes.read import probes_before
from runs.release import create_release, decide_release
from runs.run import run_report
from runs.work import find_uncertified, stop_worker, worker_rows
from tests import build, judged
from tests.nightly import few
from tests.probes import Answer, ask, served

PARAMETERS = {"prompts": 2, "seats": 2, "passes": 1}


def steady(call: ProbeExchange) -> ProbeExchange:
    return replace(call, text="blue", token_ids=(1, 0), trace_digest="aa", finish_reason="stop", batch_max=2)


def moved(call: ProbeExchange) -> ProbeExchange:
    """The last round has other logprobs."""
    return replace(steady(call), trace_digest="bb" if call.round > 3 else "aa")


def probe(answer: Answer = steady, *, by: EngineProcess | None = None) -> ProbeRecord:
    asked = ask("determinism", parameters=PARAMETERS)
    done = served(answer, by=by)
    assert done.pk == asked.pk
    return done


@pytest.fixture
def process(db: None) -> EngineProcess:
    create_profile(slug="invariant", title="", settings=DEFAULT_PROFILES["invariant"]["settings"])
    by = build.worker("prober", versions={"vllm": "0.32.0", "driver": "590.10"})
    return build.process(build.bucket(batch_class="invariant"), worker=by)


def shown() -> Certificate:
    [worker] = worker_rows()
    [certificate] = worker.certificates
    return certificate


def test_a_node_whose_bits_hold_has_a_certificate_that_names_what_it_speaks_of(process: EngineProcess) -> None:
    done = probe()
    assert (done.finding or {})["state"] == "certified"
    certificate = shown()
    assert (certificate.probe, certificate.endpoint, certificate.model) == (str(done.pk), "local", "paint-1b")
    assert (certificate.state, certificate.expired_by, certificate.seats) == ("valid", None, 2)
    assert certificate.ruled_out == (done.finding or {})["numbers"]["certificate"] > 0
    assert "paint-1b in float32, not quantised" in (done.finding or {})["sentence"]


@pytest.mark.parametrize(
    ("change", "by"),
    few(
        [
            pytest.param({"versions": {"vllm": "0.32.0", "driver": "590.11"}}, "node", id="driver"),
            pytest.param({"versions": {"vllm": "0.33.0", "driver": "590.10"}}, "node", id="engine"),
            pytest.param({"hardware": {"kind": "cpu", "cpu_isa": "AVX2"}}, "node", id="hardware"),
        ],
        1,
    ),
)
def test_another_driver_engine_or_hardware_ends_it(process: EngineProcess, change: dict[str, Any], by: str) -> None:
    probe()
    WorkerRecord.objects.filter(pk=process.worker_id).update(**change)
    assert (shown().state, shown().expired_by, shown().ruled_out is None) == ("expired", by, False)


def test_other_weights_end_it(process: EngineProcess) -> None:
    probe()
    run = build.run()
    other = Model.objects.create(digest="c" * 64, name="paint-1b", line="paint")
    RunRecord.objects.filter(pk=run.pk).update(
        bucket=BucketRecord.objects.create(model=other, fingerprint=process.bucket.fingerprint, batch_class="invariant")
    )
    assert (shown().state, shown().expired_by) == ("expired", "model")


def test_a_newer_probe_whose_bits_moved_ends_an_older_certificate(process: EngineProcess) -> None:
    probe()
    assert find_uncertified([process]) == ()
    newest = probe(moved)
    assert (newest.finding or {})["state"] == "bits_move"
    assert (shown().state, shown().ruled_out) == ("failed", None)
    assert find_uncertified([process]) == ("here",)


def test_a_certificate_speaks_of_its_host_and_bucket_alone(process: EngineProcess) -> None:
    probe()
    elsewhere = build.process(process.bucket, worker=build.worker("second", host="there"))
    fingerprint = FingerprintRecord.objects.create(digest="f" * 64, label="vLLM 0.33.0", manifest={})
    newer = BucketRecord.objects.create(model=process.bucket.model, fingerprint=fingerprint, batch_class="invariant")
    updated = build.process(newer, worker=process.worker)
    assert find_uncertified([process, elsewhere, updated]) == ("here", "there")
    assert find_uncertified([process]) == ()


def test_only_invariant_needs_one(process: EngineProcess, django_assert_num_queries: Any) -> None:
    alone = build.process(build.bucket(batch_class="alone"), worker=process.worker)
    with django_assert_num_queries(0):
        assert find_uncertified([alone]) == ()


def test_a_run_under_invariant_without_one_says_so_until_there_is_one(process: EngineProcess) -> None:
    run = build.run(repeats=1)
    RunRecord.objects.filter(pk=run.pk).update(
        profile=ProfileRecord.objects.get(slug="invariant")
    )  # no GPU is here to take it
    run.repeats.get().engine_processes.add(process)
    [warning] = [each for each in run_report(run.pk).warnings if each.code == "uncertified"]
    assert "evalboard probe local --kind determinism --profile invariant" in warning.text
    probe()
    assert "uncertified" not in {each.code for each in run_report(run.pk).warnings}


def released(baseline: RunRecord, candidate: RunRecord) -> Callable[[], dict[str, Any]]:
    """Return what takes the verdict of a release of the two anew, and returns its document."""
    judged.policy()
    gate = {"suite": "colours", "baseline": baseline.pk, "candidate": candidate.pk}
    release = create_release(gates=[gate], policy="lenient")
    return lambda: decide_release(release_id=release.pk).document


def test_a_release_under_invariant_ships_only_with_a_certificate(process: EngineProcess) -> None:
    """A certificate that comes, and one that is revoked, makes a verdict be taken anew, as a canary does."""
    read = released(judged.run(by=process), judged.run(by=process))
    document = read()
    [reason] = document["reasons"]
    assert (document["verdict"], reason["code"]) == ("inconclusive", "uncertified")
    assert reason["text"].count(f"on {process.worker.host}") == 2
    assert "evalboard probe local --kind determinism --profile" in document["next"][0]["text"]
    assert "uncertified" not in {each["code"] for each in document["warnings"]}
    probe()
    assert read()["verdict"] == "ship"
    probe(moved)
    assert read() == document


@pytest.mark.nightly
def test_a_regression_under_invariant_stands_without_one_and_says_so(process: EngineProcess) -> None:
    worse = build.process(build.bucket(batch_class="invariant", weights=judged.WORSE), worker=process.worker)
    read = released(judged.run(by=process), judged.run(0, by=worse))

    def warned() -> list[str]:
        document = read()
        assert document["verdict"] == "no_ship"
        return [each["text"] for each in document["warnings"] if each["code"] == "uncertified"]

    assert len(warned()) == 2
    assert all(process.worker.host in each for each in warned())
    probe()
    assert len(warned()) == 1, "a certificate speaks of one bucket"
    probe(by=worse)
    assert warned() == []


def test_every_worker_of_the_pool_is_asked_and_one_that_goes_is_left_out(process: EngineProcess) -> None:
    second = build.worker("second", host="there")
    asked = ask("determinism", parameters=PARAMETERS)
    assert set(asked.waits_for) == {process.worker_id, second.pk}
    assert served(steady).status == ProbeRecord.Status.QUEUED
    stop_worker(worker=second)
    lease = claim_probe(worker=process.worker)
    assert lease is None  # it has answered; whoever sweeps strikes the other off
    go_on_without_the_gone()
    done = served(steady)
    assert (done.status, (done.finding or {})["numbers"]["left_out"][0]["worker"]) == ("finished", "second")
    assert "1 worker was stopped before the end" in (done.finding or {})["sentence"]


def test_time_alone_ends_no_certificate(process: EngineProcess) -> None:
    done = probe()
    assert done.finished_at is not None
    [row] = probes_before(["local"], until=done.finished_at + timedelta(days=400))
    assert row.kind == "determinism"
