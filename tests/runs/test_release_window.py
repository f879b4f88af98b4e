"""Two models of which nobody knows what serves them: judged in turn, within the window of a paired policy."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from evalboard.core.profile import OBSERVED, identify_log
from runs.catalogue import create_policy
from runs.models import (
    BucketRecord,
    EndpointRecord,
    FingerprintRecord,
    Model,
    ProbeRecord,
    ProfileRecord,
    ReleaseRecord,
    RepeatRecord,
    RunRecord,
)
from runs.release import decide_release
from tests.nightly import few
from tests.runs import judged
from tests.runs.judged import SAMPLE_POLICY, codes

pytestmark = pytest.mark.django_db
START = timezone.now() - timedelta(hours=8)


@pytest.fixture
def version(db: None) -> Any:
    return judged.suite(policy=SAMPLE_POLICY)


def unknown(model: str, *, of: str) -> BucketRecord:
    """A bucket that a server serves which says nothing of itself; of: what keeps it apart from any other."""
    served, _ = Model.objects.get_or_create(digest=model.ljust(64, "0"), defaults={"name": model, "line": model})
    identity = identify_log({"model_reported": model}, log=of)
    stack = FingerprintRecord.objects.create(digest=identity.digest, label=identity.label, manifest=identity.manifest)
    return BucketRecord.objects.create(model=served, fingerprint=stack, batch_class=OBSERVED)


def remote(slug: str) -> str:
    named = {"base_url": "https://models.example/v1", "model_repo": slug, "line": slug, "max_model_len": None}
    return EndpointRecord.objects.create(slug=slug, engine=EndpointRecord.Engine.OPENAI, **named).slug


def run(version: Any, slug: str, minutes: list[int]) -> RunRecord:
    """A finished run on a server of others, whose repeats ended so many minutes after START."""
    made = judged.run(version, by=unknown(slug, of=f"run on {slug}"), on=remote(slug))
    for repeat, at in zip(made.repeats.order_by("index"), minutes, strict=True):
        RepeatRecord.objects.filter(pk=repeat.pk).update(finished_at=START + timedelta(minutes=at))
    RunRecord.objects.filter(pk=made.pk).update(
        started_at=START + timedelta(minutes=min(minutes) - 10), finished_at=START + timedelta(minutes=max(minutes))
    )
    made.refresh_from_db()
    return made


def canary(slug: str, state: str, at: datetime) -> None:
    ProbeRecord.objects.create(
        endpoint=EndpointRecord.objects.get(slug=slug),
        profile=ProfileRecord.objects.get(slug="pinned"),
        kind=ProbeRecord.Kind.CANARY,
        parameters={},
        status=ProbeRecord.Status.FINISHED,
        finding={"state": state, "sentence": "", "numbers": {}},
        finished_at=at,
    )


def document(release: ReleaseRecord) -> dict[str, Any]:
    assert release.verdict is not None
    return release.verdict.document


@pytest.mark.nightly
def test_two_that_took_turns_are_judged_as_services_and_it_is_said_what_is_assumed(version: Any) -> None:
    ours, theirs = run(version, "mini", [10, 40, 50, 80, 90]), run(version, "maxi", [20, 30, 60, 70, 100])
    canary("mini", "changed", START - timedelta(hours=3))  # long before, and of no concern
    canary("mini", "stable", START + timedelta(minutes=55))
    release = judged.release(ours, theirs, treatment="service", nothing_caches=True)
    (warning,) = [each for each in document(release)["warnings"] if each["code"] == "identity_assumed"]
    assert document(release)["verdict"] == "ship"
    assert "within 100 minutes" in warning["text"]
    assert warning["text"].endswith("Canary probes in that time: mini stable.")
    assert "service_judged" in codes(document(release)["warnings"])


@pytest.mark.nightly
def test_a_canary_that_ends_later_within_the_time_is_heard(version: Any) -> None:
    ours, theirs = run(version, "mini", [10, 40, 50, 80, 90]), run(version, "maxi", [20, 30, 60, 70, 100])
    release = judged.release(ours, theirs, treatment="service")
    before = document(release)["warnings"]
    canary("maxi", "changed", START + timedelta(minutes=55))
    again = decide_release(release_id=release.pk)
    assert "No canary" in str(before)
    assert "maxi changed" in str(again.document["warnings"])


@pytest.mark.parametrize(
    ("theirs", "settings"),
    few(
        [
            pytest.param([110, 120, 130, 140, 150], {}, id="one-after-the-other"),
            pytest.param([20, 30, 60, 70, 100], {"window_hours": 1.0}, id="longer-than-the-window"),
            pytest.param([20, 30, 60, 70, 100], {"rule": "strict"}, id="a-strict-policy"),
        ],
        1,
    ),
)
def test_else_what_is_unknown_ships_nothing(version: Any, theirs: list[int], settings: dict[str, Any]) -> None:
    policy, _ = create_policy(slug="hosted", title="", settings={"rule": "paired", "tolerance_points": 5.0} | settings)
    sides = run(version, "mini", [10, 40, 50, 80, 90]), run(version, "maxi", theirs)
    release = judged.release(*sides, treatment="service", policy=policy.slug)
    assert document(release)["verdict"] == "not_comparable"
    assert codes(document(release)["reasons"]) == ["unknown_stack"]
