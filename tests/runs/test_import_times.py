"""Runs of logs stand where they ran: in lists, filters, charts and on the board; and they note no rotation."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from frontend.suites.baselines import rotations
from runs.board import board
from runs.fingerprints.read_timeline import timelines
from runs.models import EngineProcess, ResponseRecord, Rotation, RunRecord
from runs.release import suite_badge
from runs.run import oldest_first, run_rows
from runs.run.read_list import RunFilter, place_of, run_page
from runs.suites import suite_rows
from runs.suites.read_history import histories
from tests import build
from tests.runs import logs

pytestmark = pytest.mark.django_db
MARCH = datetime(2026, 3, 1, 12, tzinfo=UTC)


def ran(day: int, **changes: Any) -> RunRecord:
    """The run of a log of a day in March that took an hour."""
    at = MARCH + timedelta(days=day)
    logged = logs.log(started_at=at, finished_at=at + timedelta(hours=1), **changes)
    return logs.stored(logged, name=f"day {day} {sorted(changes)}")


def ids(rows: Any) -> list[int]:
    return [int(row.id) for row in rows]


def test_the_newest_run_is_the_one_that_ran_last() -> None:
    late, early = ran(20), ran(3)
    [row, other] = run_rows()
    assert ids([row, other]) == [late.pk, early.pk]
    assert (row.ran_at, row.finished_at) == (late.ran_at, MARCH + timedelta(days=20, hours=1))
    assert row.created_at > row.ran_at
    suite = late.suite_version.suite.slug
    assert [int(line.last_run) for line in suite_rows() if line.last_run] == [late.pk]
    newest = suite_badge(suite).run
    assert newest is not None
    assert newest.id == str(late.pk)
    [bucket] = histories(late.suite_version)
    assert [(point.run_id, point.date) for point in bucket.runs] == [(early.pk, early.ran_at), (late.pk, late.ran_at)]
    assert oldest_first([late.pk, early.pk, 999_999]) == [early.pk, late.pk]


def test_runs_are_filtered_by_when_they_ran() -> None:
    early = ran(3)
    ran(20)
    here = build.run(build.suite("own"))
    assert ids(run_page(RunFilter(since=MARCH, until=MARCH + timedelta(days=10)), limit=9)) == [early.pk]
    assert ids(run_page(RunFilter(since=timezone.now() - timedelta(hours=1)), limit=9)) == [here.pk]


@pytest.mark.nightly
def test_a_page_goes_on_where_the_last_one_ended() -> None:
    """Also between runs of one moment, and where the run that a cursor names was deleted meanwhile."""
    runs = [ran(day, model=model) for day, model in ((5, "a"), (9, "b"), (9, "c"), (9, "d"), (2, "e"))]
    whole = run_page(RunFilter(), limit=9)
    assert ids(whole) == [runs[number].pk for number in (3, 2, 1, 0, 4)]
    for at, row in enumerate(whole):
        assert ids(run_page(RunFilter(), before=place_of(row), limit=9)) == ids(whole[at + 1 :])
        assert ids(run_page(RunFilter(), after=place_of(row), limit=9)) == ids(whole[:at])
        assert ids(run_page(RunFilter(), after=place_of(row), limit=1)) == ids(whole[at - 1 : at] if at else ())
    place = place_of(whole[2])
    RunRecord.objects.filter(pk=whole[2].id).update(ran_at=MARCH)
    assert ids(run_page(RunFilter(), before=place, limit=1)) == [runs[0].pk]
    assert run_page(RunFilter(), after=10**40, limit=9) == ()
    assert len(run_page(RunFilter(), before=10**40, limit=9)) == 5


def test_an_old_failure_that_is_imported_today_needs_nobody() -> None:
    ran(3, status="failed", failure="It broke.")
    recent = logs.stored(
        logs.log(status="failed", failure="It broke.", started_at=timezone.now() - timedelta(days=1)), name="recent"
    )
    assert ids(board().attention) == [recent.pk]


def test_a_response_has_the_time_that_its_log_says() -> None:
    first, *others = logs.log().responses
    run = ran(3, responses=(replace(first, answered_at=MARCH + timedelta(days=3, seconds=7)), *others))
    times = dict(ResponseRecord.objects.filter(repeat__run=run).values_list("id", "recorded_at"))
    assert sorted(times.values())[0] == MARCH + timedelta(days=3, seconds=7)
    assert run.source is not None
    assert set(sorted(times.values())[1:]) == {run.source.created_at}
    [process] = EngineProcess.objects.filter(repeats__run=run).distinct()
    assert (process.started_at, process.stopped_at) == (run.ran_at, run.finished_at)


@pytest.mark.parametrize(
    ("started_at", "finished_at"),
    [
        (None, None),
        (datetime(1970, 1, 1, tzinfo=UTC), None),
        (datetime(2093, 1, 1, tzinfo=UTC), datetime(2093, 1, 2, tzinfo=UTC)),
    ],
)
def test_a_log_without_a_time_stands_at_its_import_and_says_so(
    started_at: datetime | None, finished_at: datetime | None
) -> None:
    run = logs.stored(logs.log(started_at=started_at, finished_at=finished_at))
    assert run.source is not None
    assert (run.ran_at, run.started_at, run.finished_at) == (run.source.created_at, None, run.source.created_at)
    assert any("has the time of its import" in note for note in run.source.notes)


def test_an_end_alone_places_a_run_and_one_before_the_start_is_none() -> None:
    ended = logs.stored(logs.log(finished_at=MARCH.replace(tzinfo=None)), name="ended")
    assert (ended.ran_at, ended.started_at, ended.finished_at) == (MARCH, None, MARCH)
    torn = logs.stored(logs.log(started_at=MARCH, finished_at=MARCH - timedelta(days=1)), name="torn")
    assert (torn.ran_at, torn.finished_at) == (MARCH, MARCH)


def test_logs_note_no_rotation_anywhere() -> None:
    """Neither two logs of two stacks, nor one log whose responses came from two."""
    ran(3)
    ran(9, responses=logs.served(logs.log(), logs.BFLOAT16).responses)
    mixed = logs.log().responses
    shared = (*mixed[:3], *(replace(each, served_by=logs.BFLOAT16) for each in mixed[3:]))
    run = ran(12, responses=shared)
    assert not Rotation.objects.exists()
    [line] = timelines(turns=9)
    assert line.turns == ()
    assert [served.n_runs for served in line.fingerprints] == [2, 2]
    assert min(served.first_at for served in line.fingerprints) == MARCH + timedelta(days=3)
    assert max(served.last_at for served in line.fingerprints) == MARCH + timedelta(days=12, hours=1)
    assert rotations(histories(run.suite_version)) == ()
