"""Rotations: noticed where a run is bound to its bucket, dated, told, and expiring what they touch and nothing else."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from evalboard.core.errors import Conflict
from runs import baselines
from runs.models import BaselineRecord, Event, Rotation, RunRecord
from runs.release import create_release, decide_release
from runs.run import delete_run
from tests import build
from tests.runs import judged
from tests.runs.judged import SAMPLE_POLICY, codes

pytestmark = pytest.mark.django_db
OLD, NEW = "float32", "bfloat16"  # two stacks: their fingerprints differ in the dtype


@pytest.fixture
def version(db: None) -> Any:
    return judged.suite(n_cases=30, policy=SAMPLE_POLICY)


def small(**changes: Any) -> RunRecord:
    """A run of a small suite, where no score matters."""
    known = build.SuiteVersionRecord.objects.filter(suite__slug="small").first()
    return judged.run(known or judged.suite("small", n_cases=3), repeats=1, **changes)


def set_baseline(run: RunRecord, reason: str = "Chosen.") -> BaselineRecord:
    person = build.get_user_model().objects.first() or build.user()
    return baselines.set_baseline(suite=run.suite_version.suite.slug, run=run.pk, reason=reason, user=person)


def test_the_first_run_and_more_of_the_same_are_none() -> None:
    for _ in range(3):
        small(by=build.bucket(OLD))
    assert not Rotation.objects.exists()


def test_another_fingerprint_is_dated_told_and_expires_the_baselines_it_touches() -> None:
    first = small(by=build.bucket(OLD))
    baseline = set_baseline(first)
    elsewhere = set_baseline(small(by=build.bucket(OLD), on="other"))
    under = set_baseline(small(by=build.bucket(OLD), under="fixed"))
    second = small(by=build.bucket(NEW))
    rotation = Rotation.objects.get()
    assert (rotation.run, rotation.endpoint.slug, rotation.profile_slug) == (second, "local", "pinned")
    assert (rotation.before, rotation.after) == (first.bucket.fingerprint, second.bucket.fingerprint)  # type: ignore[union-attr]
    for each in (baseline, elsewhere, under):
        each.refresh_from_db()
    assert (baseline.rotation, elsewhere.rotation, under.rotation) == (rotation, None, None)
    [event] = Event.objects.filter(run=second, code="rotation")
    assert event.level == "warning"
    assert "local under pinned was served by" in event.text
    assert "dtype float32 → bfloat16. One baseline expired." in event.text


def test_another_model_or_batch_class_on_the_same_stack_is_none() -> None:
    small(by=build.bucket(OLD))
    small(by=build.bucket(OLD, batch_class="fixed-8"))
    assert not Rotation.objects.exists()


def test_a_run_is_bound_and_its_rotation_noted_once() -> None:
    small(by=build.bucket(OLD))
    run = build.run(repeats=1)
    for _ in range(3):
        judged.bind(run, build.bucket(NEW))
    assert Rotation.objects.count() == 1
    assert Event.objects.filter(run=run, code="rotation").count() == 1


@pytest.mark.nightly
def test_there_and_back_again() -> None:
    """What expired stays so until a person accepts it again, which they may: that stack serves again."""
    first = small(by=build.bucket(OLD))
    of_old = set_baseline(first)
    second = small(by=build.bucket(NEW))
    with pytest.raises(
        Conflict, match=rf"another stack serves endpoint local under profile pinned since .* \(run {second.pk}\)"
    ):
        set_baseline(first)
    of_new = set_baseline(second)
    third = small(by=build.bucket(OLD))
    rotations = list(Rotation.objects.order_by("id"))
    assert [(each.run_id, each.before_id, each.after_id) for each in rotations] == [
        (second.pk, first.bucket.fingerprint_id, second.bucket.fingerprint_id),  # type: ignore[union-attr]
        (third.pk, second.bucket.fingerprint_id, first.bucket.fingerprint_id),  # type: ignore[union-attr]
    ]
    of_old.refresh_from_db()
    of_new.refresh_from_db()
    assert (of_old.rotation, of_new.rotation) == tuple(rotations)
    again = set_baseline(first, "The upgrade was taken back.")
    assert again.rotation is None
    candidate = small(by=build.bucket(OLD))
    gate = {"suite": "small", "candidate": candidate.pk, "baseline": "current"}
    verdict = create_release(gates=[gate]).verdict
    assert verdict is not None
    assert "rebaseline" not in codes(verdict.document["reasons"])


def test_an_expired_baseline_ships_nothing(version: Any) -> None:
    """Not even where the candidate happens to be served as the baseline was."""
    process = build.process(build.bucket(OLD))
    baseline = judged.run(version, by=process)
    set_baseline(baseline)
    early = judged.run(version, by=process)
    rotated = small(by=build.bucket(NEW))
    small(by=build.bucket(OLD))  # and back
    late = judged.run(version, by=process)

    def verdict(candidate: RunRecord, against: Any) -> Any:
        gate = {"suite": "sample", "candidate": candidate.pk, "baseline": against}
        return create_release(gates=[gate]).verdict

    # Both were run before anything rotated.
    assert verdict(early, "current").word == "ship"
    for named in ("current", baseline.pk):
        found = verdict(late, named)
        assert (found.word, codes(found.document["reasons"])) == ("not_comparable", ["rebaseline"])
        since = f"another serving stack began to answer at endpoint local under profile pinned (run {rotated.pk})."
        assert since in found.document["summary"]
    set_baseline(baseline, "The upgrade was taken back.")
    assert verdict(late, "current").word == "ship"


@pytest.mark.nightly
def test_accepting_a_baseline_again_mends_the_releases_that_rest_on_it(version: Any) -> None:
    process = build.process(build.bucket(OLD))
    baseline = judged.run(version, by=process)
    set_baseline(baseline)
    small(by=build.bucket(NEW))
    small(by=build.bucket(OLD))
    release = judged.release(baseline, judged.run(version, by=process))
    assert decide_release(release_id=release.pk).word == "not_comparable"
    set_baseline(baseline, "The upgrade was taken back.")
    assert decide_release(release_id=release.pk).word == "ship"


@pytest.mark.nightly
def test_a_run_by_hand_on_an_outdated_stack_is_expired_too(version: Any) -> None:
    baseline = judged.run(version, by=build.bucket(OLD))
    small(by=build.bucket(NEW))
    release = judged.release(baseline, judged.run(version, by=build.bucket(OLD), on="other"))
    assert release.verdict is not None
    assert (release.verdict.word, codes(release.verdict.document["reasons"])) == ("not_comparable", ["rebaseline"])


@pytest.mark.nightly
def test_a_stack_is_judged_against_the_baseline_that_it_expired(version: Any) -> None:
    """An upgrade is qualified so, whoever ran something on it first."""
    baseline = judged.run(version, by=build.bucket(OLD))
    set_baseline(baseline)
    small(by=build.bucket(NEW))
    release = judged.release(baseline, judged.run(version, by=build.bucket(NEW)), treatment="stack")
    assert release.verdict is not None
    assert release.verdict.word == "ship"
    assert {"baseline_expired", "stack_judged"} <= set(codes(release.verdict.document["warnings"]))


def test_before_rotations_were_noted_the_last_run_says_what_served() -> None:
    """An installation that is upgraded: runs of two stacks, and no rotation stored."""
    first = small(by=build.bucket(OLD))
    second = small(by=build.bucket(NEW))
    Rotation.objects.all().delete()
    with pytest.raises(Conflict, match="since later runs"):
        set_baseline(first)
    set_baseline(second)
    small(by=build.bucket(OLD))
    assert Rotation.objects.get().before == second.bucket.fingerprint  # type: ignore[union-attr]


def test_the_run_that_dates_a_rotation_is_kept() -> None:
    small(by=build.bucket(OLD))
    second = small(by=build.bucket(NEW))
    with pytest.raises(Conflict, match="dates that rotation"):
        delete_run(run_id=second.pk)


@pytest.mark.django_db(transaction=True)
def test_two_runs_bound_at_once_by_two_stacks_are_one_rotation() -> None:
    version = judged.suite("small", n_cases=3)
    runs = [build.run(version, repeats=1) for _ in range(2)]
    buckets = [build.bucket(OLD), build.bucket(NEW)]
    together = threading.Barrier(2)

    def bind(place: int) -> None:
        try:
            together.wait(timeout=60)
            judged.bind(runs[place], buckets[place])
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(bind, place) for place in range(2)]:
            each.result(timeout=60)
    rotation = Rotation.objects.get()
    assert {rotation.before_id, rotation.after_id} == {bucket.fingerprint_id for bucket in buckets}
