"""What webhooks are told of verdicts and rotations, once a change. Ends of runs: tests/worker/test_sending.py."""

from typing import Any

import pytest
from django.urls import resolve

from runs.baselines import set_baseline
from runs.models import OutboxMessage
from runs.release import decide_release
from runs.run import add_repeats
from runs.webhooks import create_webhook
from tests import build
from tests.runs import judged
from tests.runs.judged import SAMPLE_POLICY

pytestmark = pytest.mark.django_db
ADDRESS = "https://evalboard.example.com"


@pytest.fixture(autouse=True)
def told(settings: Any) -> None:
    settings.PUBLIC_ADDRESS = ADDRESS
    events = ["release.decided", "rotation.noticed"]
    create_webhook(url="https://hooks.example/", events=events, user=build.user("root", "admin"))


def messages(event: str) -> list[dict[str, Any]]:
    """The bodies of an event's messages, in the order they were written."""
    return list(OutboxMessage.objects.filter(event=event).order_by("id").values_list("payload", flat=True))


def page_of(url: str) -> str | None:
    return resolve(url.removeprefix(ADDRESS)).url_name


def test_a_verdict_is_told_once_and_again_only_where_it_is_another_one() -> None:
    version = judged.suite(policy=SAMPLE_POLICY)
    process = build.process()
    baseline, candidate = judged.run(version, by=process), judged.run(version, by=process)
    release = judged.release(baseline, candidate, labels={"commit": "8f21c0e"})
    decide_release(release_id=release.pk)
    [message] = messages("release.decided")
    assert release.verdict is not None
    summary = release.verdict.document["summary"]
    assert message["text"] == f"Release {release.pk}: ship. {summary} {ADDRESS}/releases/{release.pk}/"
    data = message["data"]
    assert page_of(data["url"]) == "release"
    assert (data["verdict"], data["verdict_before"], data["labels"]) == ("ship", None, {"commit": "8f21c0e"})
    assert data["input_digest"] == release.verdict.input_digest
    [gate] = data["gates"]
    assert gate == {
        "suite": "sample",
        "tier": "critical",
        "verdict": "ship",
        "baseline": str(baseline.pk),
        "candidate": str(candidate.pk),
    }
    add_repeats(run_id=candidate.pk, n=1)
    judged.more(candidate, range(6, 7))
    decide_release(release_id=release.pk)
    assert len(messages("release.decided")) == 1, "the inputs are others, the word is the same"


@pytest.mark.nightly
def test_a_verdict_that_turns_is_told_with_the_one_before() -> None:
    version = judged.suite(policy=SAMPLE_POLICY)
    process = build.process()
    sides = [judged.run(version, repeats=3, by=process) for _ in range(2)]
    release = judged.release(*sides)
    for run in sides:
        add_repeats(run_id=run.pk, n=2)
        judged.more(run, range(4, 6))
    decide_release(release_id=release.pk)
    told = [(message["data"]["verdict_before"], message["data"]["verdict"]) for message in messages("release.decided")]
    assert told == [(None, "inconclusive"), ("inconclusive", "ship")]


def test_a_rotation_is_told_with_the_baselines_that_expired() -> None:
    version = judged.suite("small", n_cases=3)
    first = judged.run(version, repeats=1, by=build.bucket("float32"))
    set_baseline(suite="small", run=first.pk, reason="Chosen.", user=build.user("grace", "release manager"))
    second = judged.run(version, repeats=1, by=build.bucket("bfloat16"))
    [message] = messages("rotation.noticed")
    data = message["data"]
    assert (data["endpoint"], data["profile"], data["run"]) == ("local", "pinned", str(second.pk))
    assert (data["fingerprint_before"]["label"], data["fingerprint_after"]["label"]) == (
        "vLLM 0.32.0, CPU, float32",
        "vLLM 0.32.0, CPU, bfloat16",
    )
    assert data["expired_baselines"] == [{"suite": "small", "run": str(first.pk)}]
    assert page_of(data["url"]) == "run"
    assert "Baselines expired: small." in message["text"]
