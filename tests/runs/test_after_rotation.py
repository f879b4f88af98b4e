"""After a rotation of a server of others, the reference sets of its expired baselines run by themselves, once."""

from typing import Any

import pytest

from runs import baselines
from runs.models import BaselineRecord, EndpointRecord, Event, Rotation, RunRecord
from runs.sweep import reconcile
from tests import build
from tests.nightly import few
from tests.runs import judged

pytestmark = pytest.mark.django_db
OLD, NEW = "float32", "bfloat16"  # two stacks
REMOTE = {
    "engine": EndpointRecord.Engine.OPENAI,
    "base_url": "https://models.example/v1",
    "max_model_len": None,
    "rescores": True,
}


@pytest.fixture
def version(db: None) -> Any:
    cases = judged.document("colours", n_cases=12)["cases"]
    return judged.suite("colours", cases=[{**case, "reference": index < 4} for index, case in enumerate(cases)])


def rotate(version: Any, **of_endpoint: Any) -> Rotation:
    """A baseline on an endpoint, and a run that another stack served."""
    build.endpoint("hosted")
    EndpointRecord.objects.filter(slug="hosted").update(**of_endpoint)
    first = judged.run(version, repeats=2, by=build.bucket(OLD), on="hosted")
    baselines.set_baseline(suite="colours", run=first.pk, reason="Chosen.", user=build.user())
    judged.run(version, repeats=2, by=build.bucket(NEW), on="hosted")
    return Rotation.objects.get()


def test_the_reference_set_runs_once_and_stands_on_the_rotation(version: Any) -> None:
    rotation = rotate(version, **REMOTE)
    for _ in range(2):
        reconcile()
    (run,) = rotation.reference_runs.all()
    assert (run.suite_version.suite.slug, run.suite_version.n_cases) == ("colours-reference", 4)
    assert (run.endpoint.slug, run.profile.slug, run.repeats.count()) == ("hosted", "pinned", 2)
    assert run.status == RunRecord.Status.QUEUED
    (event,) = Event.objects.filter(run=rotation.run, code="rescored")
    assert f"its reference set runs automatically, as run {run.pk}." in event.text


@pytest.mark.nightly
def test_an_earlier_run_of_the_reference_set_is_named_to_compare_with(version: Any) -> None:
    from runs.suites import reference_suite

    build.endpoint("hosted")
    EndpointRecord.objects.filter(slug="hosted").update(**REMOTE)
    before = judged.run(reference_suite(slug="colours"), repeats=2, by=build.bucket(OLD), on="hosted")
    first = judged.run(version, repeats=2, by=build.bucket(OLD), on="hosted")
    baselines.set_baseline(suite="colours", run=first.pk, reason="Chosen.", user=build.user())
    judged.run(version, repeats=2, by=build.bucket(NEW), on="hosted")
    reconcile()
    (event,) = Event.objects.filter(code="rescored")
    assert f"It is compared with run {before.pk}, which the earlier stack served." in event.text


@pytest.mark.nightly
def test_without_marked_cases_the_first_ones_stand_in(db: None) -> None:
    rotation = rotate(judged.suite("colours", n_cases=3), **REMOTE)
    reconcile()
    assert rotation.reference_runs.get().suite_version.n_cases == 3


@pytest.mark.parametrize(
    "changes", few([{"rescores": False}, {"engine": EndpointRecord.Engine.VLLM, "max_model_len": 2048}], 1)
)
def test_nothing_runs_where_nobody_wants_it(version: Any, changes: dict[str, Any]) -> None:
    rotation = rotate(version, **REMOTE | changes)
    reconcile()
    assert not rotation.reference_runs.exists()


@pytest.mark.nightly
def test_a_set_that_cannot_run_is_named_and_not_tried_again(version: Any) -> None:
    rotation = rotate(version, **REMOTE)
    judged.suite("colours-reference", n_cases=3)  # a person's, under the name that the set needs
    for _ in range(2):
        reconcile()
    (event,) = Event.objects.filter(run=rotation.run, code="rescore_failed")
    assert "could not be run after the rotation" in event.text
    assert not rotation.reference_runs.exists()


def test_it_waits_in_the_queue_of_who_set_the_baseline(version: Any) -> None:
    rotation = rotate(version, **REMOTE)
    reconcile()
    assert rotation.reference_runs.get().created_by == BaselineRecord.objects.get().set_by


@pytest.mark.nightly
def test_a_person_s_queue_that_is_full_is_not_filled_further(version: Any, settings: Any) -> None:
    rotation = rotate(version, **REMOTE)
    settings.MAX_QUEUED_RESPONSES = 7  # of the eight of the set
    for _ in range(2):
        reconcile()
    (event,) = Event.objects.filter(run=rotation.run, code="rescore_failed")
    assert "ada" in event.text
    assert not rotation.reference_runs.exists()
