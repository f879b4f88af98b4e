"""Audits of a pool: each worker decodes the same cases, and what they do not agree on is told to whoever listens."""

from dataclasses import replace
from typing import Any

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.core.probes import ProbeExchange
from runs.models import OutboxMessage, ProbeRecord, ScheduledStart, ScheduleRecord, WorkerRecord
from runs.probes import claim_probe, create_probe, finish_probe, record_calls
from runs.probes.read import probe_detail, probe_work, probes_to_mind
from runs.schedules import create_schedule
from runs.schedules.schedules import start_due
from runs.webhooks import create_webhook
from tests import build
from tests.probes import Answer, ask, remote

AT = "2026-11-23T14:02:11.000+00:00"


def blue(call: ProbeExchange) -> ProbeExchange:
    return replace(call, text="blue", token_ids=(1, 0), trace_digest="aa", logprobs=(-0.5, -0.1), at=AT)


def red(call: ProbeExchange) -> ProbeExchange:
    """The second case comes out as another word."""
    return replace(blue(call), text="red", token_ids=(2, 0), trace_digest="bb") if call.prompt == 1 else blue(call)


def serve(worker: WorkerRecord, answer: Answer, bucket: Any = None) -> None:
    """Answer the probe that waits for this worker, in a bucket that all share unless another is given."""
    lease = claim_probe(worker=worker)
    assert lease is not None
    process = build.process(bucket, worker=worker)
    by = {"worker": worker.pk, "engine_process": process.pk, "bucket": process.bucket_id, "fingerprint": "f" * 64}
    for calls in probe_work(lease.id, worker_id=worker.pk).rounds:
        record_calls(lease=lease, calls=[replace(answer(call), **by) for call in calls])
    finish_probe(lease=lease)


@pytest.fixture
def pool(db: None) -> tuple[WorkerRecord, WorkerRecord]:
    return build.worker("gpu-1", host="a"), build.worker("gpu-2", host="b")


def audit(pool: tuple[WorkerRecord, WorkerRecord], *answers: Answer, **parameters: Any) -> ProbeRecord:
    asked = ask("audit", parameters=parameters or {"prompts": 2})
    for worker, answer in zip(pool, answers, strict=True):
        serve(worker, answer)
    asked.refresh_from_db()
    return asked


def found(probe: ProbeRecord) -> dict[str, Any]:
    assert probe.finding is not None
    return probe.finding


def test_every_worker_decodes_every_case_and_agreement_is_told(pool: tuple[WorkerRecord, WorkerRecord]) -> None:
    done = audit(pool, blue, blue)
    assert (found(done)["state"], found(done)["numbers"]["n_held"]) == ("identical", 2)
    detail = probe_detail(done.pk)
    assert (detail.progress.n_done, detail.progress.n_total, set(detail.workers)) == (4, 4, {"gpu-1", "gpu-2"})


def test_an_incident_has_its_evidence_and_a_webhook_is_told(pool: tuple[WorkerRecord, WorkerRecord]) -> None:
    create_webhook(url="https://hooks.example.com/x", events=["audit.incident"], user=build.user())
    done = audit(pool, blue, red)
    [row] = found(done)["numbers"]["incidents"]
    assert (row["name"], row["host"], row["at"], row["position"]) == ("gpu-2", "b", AT, 0)
    assert (row["token_against_text"], row["token_text"]) == ("blue", "·red")
    [message] = OutboxMessage.objects.all()
    data = message.payload["data"]
    [told] = data["incidents"]
    assert (data["n_incidents"], told["worker"], told["against"]) == (1, "gpu-2", "gpu-1")
    assert "blue" not in str(message.payload)
    [minded] = probes_to_mind(since=done.created_at.replace(year=2020))
    assert minded.id == str(done.pk)


def test_identical_answers_are_no_news(pool: tuple[WorkerRecord, WorkerRecord]) -> None:
    create_webhook(url="https://hooks.example.com/x", events=["audit.incident"], user=build.user())
    audit(pool, blue, blue)
    assert not OutboxMessage.objects.exists()


def test_an_audit_is_held_against_the_one_before_that_asked_the_same(pool: tuple[WorkerRecord, WorkerRecord]) -> None:
    first = audit(pool, blue, blue)
    changed = audit(pool, red, red)
    assert (found(changed)["state"], found(changed)["numbers"]["earlier_probe"]) == ("differs", str(first.pk))
    other = audit(pool, red, red, prompts=3)
    assert (found(other)["state"], found(other)["numbers"]["earlier_probe"]) == ("identical", None)


def test_two_stacks_that_answer_unlike_are_told_as_such(pool: tuple[WorkerRecord, WorkerRecord]) -> None:
    asked = ask("audit", parameters={"prompts": 2})
    serve(pool[0], blue)
    serve(pool[1], red, build.bucket("bfloat16"))
    asked.refresh_from_db()
    assert (found(asked)["state"], found(asked)["numbers"]["n_incidents"]) == ("stacks_differ", 0)


def test_the_reference_set_of_a_suite_is_decoded_and_its_cases_are_named(
    pool: tuple[WorkerRecord, WorkerRecord],
) -> None:
    build.suite()
    done = audit(pool, blue, red, suite="colours")
    assert [row["case"] for row in found(done)["numbers"]["incidents"]] == ["sea"]


def test_chosen_cases_of_a_suite_are_decoded_in_the_suite_s_order(pool: tuple[WorkerRecord, WorkerRecord]) -> None:
    build.suite()
    done = audit(pool, blue, red, suite="colours", cases=["a/b c", "sky"])
    assert probe_detail(done.pk).progress.n_total == 4  # two cases by two workers
    assert [row["case"] for row in found(done)["numbers"]["incidents"]] == ["a/b c"]
    with pytest.raises(InvalidInput) as refused:
        ask("audit", parameters={"suite": "colours", "cases": ["sky", "desert"]})
    assert refused.value.fields == {"parameters.cases": "colours v1 has no case desert; its page lists the ids."}


def test_servers_of_others_are_not_audited(pool: tuple[WorkerRecord, WorkerRecord]) -> None:
    build.profile()
    with pytest.raises(InvalidInput) as refused:
        create_probe(endpoint=remote(), kind="audit", parameters={})
    assert "kind" in refused.value.fields


def test_a_schedule_starts_an_audit_at_its_time(pool: tuple[WorkerRecord, WorkerRecord]) -> None:
    build.endpoint("local")
    build.profile()
    order = {"endpoint": "local", "kind": "audit", "parameters": {"prompts": 2}}
    schedule = create_schedule(slug="audit", cron="0 3 * * *", kind="probe", order=order, user=build.user())
    ScheduleRecord.objects.filter(pk=schedule.pk).update(next_at="2026-01-01T03:00Z")
    assert start_due(schedule.pk)
    start = ScheduledStart.objects.get(schedule=schedule)
    assert (start.problem, start.probe and start.probe.kind) == ("", "audit")
    assert start.probe is not None
    assert set(start.probe.waits_for) == {worker.pk for worker in pool}
