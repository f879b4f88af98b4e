"""Rotations of servers of others: shown by a run or by a probe, of the endpoint whatever the profile, and re-scored."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from evalboard.core.probes import ProbeExchange
from runs import baselines
from runs.models import BaselineRecord, EndpointRecord, Rotation, RunRecord
from runs.release import create_release
from runs.sweep import reconcile
from tests import build, probes
from tests.frontend.test_fingerprints import words
from tests.nightly import nightly
from tests.probes import backend
from tests.runs import judged

pytestmark = pytest.mark.django_db
KINDS = ("canary", "routing", "capability", "seed")
PARAMETERS = {"canary": {"prompts": 2}, "routing": {"calls": 20}, "seed": {"prompts": 2, "calls_per_group": 4}}


@pytest.fixture
def version(db: None) -> Any:
    return judged.suite("colours", n_cases=12)


def answered(version: Any, by: str, **changes: Any) -> RunRecord:
    """A run that one backend of the hosted endpoint answered."""
    probes.remote("hosted", rescores=True)
    return judged.run(version, repeats=2, by=backend(by), on="hosted", **changes)


def chosen(run: RunRecord) -> BaselineRecord:
    person = build.get_user_model().objects.filter(username="ada").first() or build.user()
    return baselines.set_baseline(suite="colours", run=run.pk, reason="Chosen.", user=person)


def probed(kind: str, *names: str) -> Any:
    """A probe whose calls these backends answered, the last of them all that were left."""
    probes.ask(kind, on="hosted", parameters=PARAMETERS.get(kind, {}))
    left = list(names)

    def answer(call: ProbeExchange) -> ProbeExchange:
        return replace(call, text="blue", finish_reason="stop", backend=left.pop(0) if len(left) > 1 else left[0])

    return probes.served_by_others(answer)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [KINDS[0], *nightly(KINDS[1:])])
def test_what_a_probe_alone_has_seen_is_a_rotation_as_of_a_run(version: Any, kind: str) -> None:
    baseline = chosen(answered(version, "a"))
    probed(kind, "a")
    assert not Rotation.objects.exists()
    probe = probed(kind, "b")
    rotation = Rotation.objects.get()
    assert (rotation.probe, rotation.run, rotation.profile_slug) == (probe, None, "")
    assert (rotation.before, rotation.after) == (backend("a").fingerprint, backend("b").fingerprint)
    baseline.refresh_from_db()
    assert baseline.rotation == rotation
    answered(version, "b")  # which the probe has dated already
    assert Rotation.objects.count() == 1


@pytest.mark.nightly
def test_who_gave_less_of_a_probe_joins(version: Any) -> None:
    chosen(answered(version, "a"))
    probed("routing", *["b"] * 9, "a")
    assert not Rotation.objects.exists()


@pytest.mark.nightly
def test_a_probe_that_nothing_names_the_answers_of_shows_none(version: Any) -> None:
    chosen(answered(version, "a"))
    assert probed("routing", "").bucket is None
    assert not Rotation.objects.exists()


def test_two_probes_without_any_run_show_one_too() -> None:
    probes.remote("hosted")
    probed("canary", "a")
    probed("routing", "b")
    assert Rotation.objects.get().before == backend("a").fingerprint


@pytest.mark.nightly
def test_a_run_that_began_before_the_newest_rotation_shows_no_other(version: Any) -> None:
    """A long run is judged when it ends, and a probe may have seen meanwhile what serves now."""
    chosen(answered(version, "a"))
    long_run = build.run(version, repeats=1, on="hosted")
    RunRecord.objects.filter(pk=long_run.pk).update(started_at=F("created_at"))
    probed("routing", "b")
    Rotation.objects.update(at=F("at") + timedelta(minutes=5))
    build.decode(long_run, 1, judged.texts(12, 1, {}), by=build.process(backend("a")))
    assert Rotation.objects.count() == 1


@pytest.mark.nightly
def test_it_is_of_the_endpoint_whatever_the_profile_and_of_no_other_endpoint(version: Any) -> None:
    mine, other = chosen(answered(version, "a")), chosen(answered(version, "a", under="fast"))
    probes.remote("elsewhere", line="elsewhere")
    elsewhere = chosen(judged.run(version, repeats=2, by=backend("a"), on="elsewhere"))
    candidate = answered(version, "b", under="fast")
    rotation = Rotation.objects.get()
    for each in (mine, other, elsewhere):
        each.refresh_from_db()
    assert (mine.rotation, other.rotation, elsewhere.rotation) == (rotation, rotation, None)
    assert (rotation.run, rotation.profile_slug) == (candidate, "")
    late = answered(version, "b")
    verdict = create_release(gates=[{"suite": "colours", "candidate": late.pk, "baseline": "current"}]).verdict
    assert verdict is not None
    assert "another serving stack began to answer at endpoint hosted" in verdict.document["summary"]


def test_a_release_on_what_a_probe_expired_names_the_probe(version: Any) -> None:
    chosen(answered(version, "a"))
    probe = probed("canary", "b")
    late = answered(version, "b")
    verdict = create_release(gates=[{"suite": "colours", "candidate": late.pk, "baseline": "current"}]).verdict
    assert verdict is not None
    since = f"another serving stack began to answer at endpoint hosted (probe {probe.pk})."
    assert since in verdict.document["summary"]


@pytest.mark.nightly
def test_each_expired_baseline_is_scored_again_under_its_own_profile(version: Any) -> None:
    for profile in ("pinned", "fast"):
        chosen(answered(version, "a", under=profile))
    probed("canary", "b")
    reconcile()
    references = Rotation.objects.get().reference_runs.all()
    assert sorted(run.profile.slug for run in references) == ["fast", "pinned"]


@pytest.mark.nightly
def test_the_row_of_a_rotation_says_what_is_under_way_and_then_links_the_comparison(
    version: Any, viewer: Client
) -> None:
    first = answered(version, "a")
    chosen(first)
    probed("canary", "b")
    page = words(viewer, "/endpoints/hosted/")
    assert "every profile: " in page
    assert "The reference sets of its baselines will run next." in page
    reconcile()
    reference = Rotation.objects.get().reference_runs.get()
    page = words(viewer, "/endpoints/hosted/")
    under_way = f"colours-reference is running as run {reference.pk}, 0 of 24 responses; it is compared with run"
    assert f"{under_way} {first.pk}." in page
    by = build.process(backend("b"))
    for repeat in (1, 2):
        build.decode(reference, repeat, judged.texts(12, repeat, {0: judged.ALWAYS, 1: judged.ALWAYS}), by=by)
    assert "is about to be compared with" in words(viewer, "/endpoints/hosted/")
    reconcile()
    assert "colours-reference, 100.0 → 83.3." in words(viewer, "/endpoints/hosted/")
    link = f'href="/compare/{first.pk}/{reference.pk}/"'
    assert link in viewer.get("/endpoints/hosted/").content.decode()
    assert viewer.get(f"/compare/{first.pk}/{reference.pk}/").status_code == 200
    assert link in viewer.get("/fingerprints/").content.decode()


@pytest.mark.nightly
def test_a_reference_set_that_cannot_run_says_so_on_the_row(version: Any, viewer: Client) -> None:
    chosen(answered(version, "a"))
    judged.suite("colours-reference", n_cases=3)  # a person's, under the name that the set needs
    probed("canary", "b")
    reconcile()
    assert "could not be run after the rotation" in words(viewer, "/endpoints/hosted/")


def test_nothing_runs_by_itself_unless_the_endpoint_says_so(version: Any) -> None:
    from runs.catalogue import create_endpoint

    made = create_endpoint(
        slug="theirs", engine="openai", base_url="https://models.example/v1", model_name="paint-1b", line="paint"
    )
    assert made.rescores is False
    chosen(answered(version, "a"))
    EndpointRecord.objects.filter(slug="hosted").update(rescores=False)
    probed("canary", "b")
    reconcile()
    assert BaselineRecord.objects.get().rotation is not None
    assert not Rotation.objects.get().reference_runs.exists()
