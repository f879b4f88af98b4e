"""Which fingerprints served an endpoint when, and where one followed another."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.fingerprints.read_timeline import list_rotations, served_buckets, timelines
from runs.models import BucketRecord, EngineProcess, RepeatRecord, RunRecord
from tests import build
from tests.probes import alike, ask, backend, remote, served_by_others

pytestmark = pytest.mark.django_db
MONDAY = datetime(2026, 11, 16, 9, tzinfo=UTC)


def served(day: int, by: BucketRecord, **changes: Any) -> RunRecord:
    """A run of one repeat that a fresh process of a bucket served within an hour of a day of the week from 0."""
    process = build.process(by)
    run = build.finished_run(["blue", "blue", "red"], by=process, **changes)
    begun = MONDAY + timedelta(days=day)
    EngineProcess.objects.filter(pk=process.pk).update(started_at=begun)
    RunRecord.objects.filter(pk=run.pk).update(started_at=begun)
    RepeatRecord.objects.filter(run=run).update(finished_at=begun + timedelta(hours=1))
    build.rotated(RunRecord.objects.get(pk=run.pk), begun)
    return run


@pytest.mark.nightly
def test_a_fingerprint_is_shown_from_its_first_to_its_last_day_with_its_buckets() -> None:
    one, other = build.bucket("float32"), build.bucket("bfloat16")
    for day in (0, 1):
        served(day, one)
    served(2, other)
    [line] = timelines(turns=5)
    assert line.endpoint == "local"
    newest, oldest = line.fingerprints
    assert (int(newest.fingerprint.id), int(oldest.fingerprint.id)) == (other.fingerprint_id, one.fingerprint_id)
    assert (oldest.first_at, oldest.last_at) == (MONDAY, MONDAY + timedelta(days=1, hours=1))
    assert oldest.n_runs == 2
    [bucket] = oldest.buckets
    assert (bucket.bucket_id, bucket.profile, bucket.model.name, bucket.batch_class) == (
        one.pk,
        "pinned",
        "paint-1b",
        "alone",
    )


def test_a_rotation_is_another_fingerprint_than_the_previous_runs_and_says_what_moved() -> None:
    one, other = build.bucket("float32"), build.bucket("bfloat16")
    served(0, one)
    first = served(1, other)
    served(2, other)
    [line] = timelines(turns=5)
    [turn] = line.turns
    assert (turn.run_id, turn.at) == (first.pk, MONDAY + timedelta(days=1))
    assert (int(turn.before.id), int(turn.after.id)) == (one.fingerprint_id, other.fingerprint_id)
    assert [(each.field, each.baseline, each.candidate) for each in turn.moved] == [
        ("engine.dtype", "float32", "bfloat16")
    ]
    assert list_rotations(one.fingerprint_id, limit=5) == list_rotations(other.fingerprint_id, limit=5) == (turn,)


@pytest.mark.nightly
def test_another_endpoint_or_profile_is_no_rotation() -> None:
    one, other = build.bucket("float32"), build.bucket("bfloat16")
    served(0, one)
    served(1, other, on="elsewhere")
    served(2, other, under="fast")
    served(3, one)
    assert [line.turns for line in timelines(turns=5)] == [(), ()]


@pytest.mark.nightly
def test_rotations_are_bounded_for_each_endpoint_and_the_newest_stay() -> None:
    dtypes = [build.bucket("float32"), build.bucket("bfloat16")]
    for day in range(5):
        served(day, dtypes[day % 2])
        served(day, dtypes[day % 2], on="elsewhere")
    lines = timelines(turns=2)
    assert [[turn.at.day for turn in line.turns] for line in lines] == [[20, 19], [20, 19]]
    assert [turn.at.day for turn in list_rotations(dtypes[0].fingerprint_id, limit=3)] == [20, 20, 19]


def test_a_run_that_two_fingerprints_served_stands_with_both() -> None:
    """Which of them counts for a rotation, what the run is bound to says."""
    one, other = build.bucket("float32"), build.bucket("bfloat16")
    run = build.run(repeats=2)
    for index, bucket in enumerate((one, other), start=1):
        build.decode(run, index, ["blue", "blue", "red"], by=build.process(bucket))
    [line] = timelines(turns=5)
    assert [served.n_runs for served in line.fingerprints] == [1, 1]


def test_a_probe_draws_every_backend_that_answered_it_beside_those_of_runs() -> None:
    remote("hosted")
    names = iter(["a", "a", "b", "a"])
    ask("routing", on="hosted", parameters={"calls": 4})
    probe = served_by_others(lambda call: replace(alike(call), backend=next(names)))
    [line] = timelines(turns=5)
    assert line.endpoint == "hosted"
    assert {each.fingerprint.label.split()[0] for each in line.fingerprints} == {"a", "b"}
    for each in line.fingerprints:
        assert (each.n_runs, each.n_probes, each.first_at, each.last_at) == (0, 1, probe.finished_at, probe.finished_at)
    served(0, backend("a"), on="hosted")
    [line] = timelines(turns=5)
    counts = {each.fingerprint.label.split()[0]: (each.n_runs, each.n_probes) for each in line.fingerprints}
    assert counts == {"a": (1, 1), "b": (0, 1)}
    of_a = next(each for each in line.fingerprints if each.n_runs)
    assert (of_a.first_at, of_a.last_at) == (MONDAY, probe.finished_at)
    (only,) = served_buckets(fingerprints=(backend("b").fingerprint_id,))
    assert (only.endpoint, only.profile, only.n_probes) == ("hosted", "pinned", 1)


def test_a_probe_whose_answers_nothing_names_draws_nobody() -> None:
    remote("hosted")
    ask("routing", on="hosted", parameters={"calls": 2})
    served_by_others(alike)
    assert timelines(turns=5) == ()


def test_a_run_that_nothing_has_answered_served_nobody() -> None:
    bucket = build.bucket()
    run = build.run()
    RunRecord.objects.filter(pk=run.pk).update(bucket=bucket)
    assert timelines(turns=5) == ()
    assert served_buckets(fingerprints=(bucket.fingerprint_id,)) == ()


def test_one_endpoint_can_be_asked_for() -> None:
    served(0, build.bucket())
    served(1, build.bucket("bfloat16"), on="elsewhere")
    assert [line.endpoint for line in timelines(endpoint="elsewhere", turns=5)] == ["elsewhere"]
    assert [line.endpoint for line in timelines(turns=5)] == ["elsewhere", "local"]


@pytest.mark.nightly
def test_fifty_runs_cost_as_many_queries_as_two_and_no_response_is_read() -> None:
    dtypes = [build.bucket("float32"), build.bucket("bfloat16")]
    for day in range(2):
        served(day, dtypes[day % 2])
    with CaptureQueriesContext(connection) as few:
        timelines(turns=9)
    for day in range(2, 50):
        served(day % 7, dtypes[day % 2])
    with CaptureQueriesContext(connection) as many:
        timelines(turns=9)
        list_rotations(dtypes[0].fingerprint_id, limit=9)
    assert len(few) <= 11
    assert len(many) <= len(few) + 4  # list_rotations: their ids, the rotations, their reference runs, what waits
    assert not [query for query in many if "runs_response" in query["sql"]]
