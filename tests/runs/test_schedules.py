"""Schedules: what is started when, once however many look, and what is said where nothing is."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from evalboard.core.errors import Conflict, EvalboardError, InvalidInput, NotFound
from runs.access import grant_role
from runs.models import ProbeRecord, RunRecord, ScheduledStart, ScheduleRecord
from runs.run import create_run
from runs.schedules import create_schedule, pause_schedule, resume_schedule, schedule_rows, start_due
from runs.schedules.times import describe_times, latest_time, next_time, time_problems
from runs.sweep import reconcile
from tests import build

NewSchedule = Callable[..., ScheduleRecord]
NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


@pytest.fixture
def order(db: None) -> dict[str, Any]:
    build.suite()
    return {"suite": "colours", "endpoint": build.endpoint(), "profile": build.profile(), "repeats": 1}


@pytest.fixture
def new_schedule(order: dict[str, Any]) -> NewSchedule:
    person = build.user()

    def make(**changes: Any) -> ScheduleRecord:
        known: dict[str, Any] = {"slug": "nightly", "cron": "0 3 * * *", "kind": "run", "order": order, "user": person}
        return create_schedule(**{**known, **changes})

    return make


def come_due(schedule: ScheduleRecord, *, ago: timedelta = timedelta(0)) -> datetime:
    """Let its last due time before now, or one so long ago, be the one that it waits for."""
    due_at = latest_time(schedule.cron, schedule.time_zone, until=timezone.now() - ago)
    ScheduleRecord.objects.filter(pk=schedule.pk).update(next_at=due_at)
    return due_at


def a_day_passes(schedule: ScheduleRecord) -> None:
    """What it did was done a day before, and it is due again."""
    for start in ScheduledStart.objects.order_by("due_at"):
        start.due_at -= timedelta(days=1)
        start.save()
    come_due(schedule)


def starts(schedule: ScheduleRecord) -> list[ScheduledStart]:
    return list(ScheduledStart.objects.filter(schedule=schedule))


@pytest.mark.parametrize(
    ("cron", "zone", "after", "due"),
    [
        ("0 3 * * 1-5", "UTC", "2026-11-20T03:00:00+00:00", "2026-11-23T03:00:00+00:00"),
        ("0 3 * * *", "Europe/Berlin", "2026-11-23T12:00:00+00:00", "2026-11-24T02:00:00+00:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00+00:00", "2026-03-29T01:00:00+00:00"),  # 02:30 is left out
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00+00:00", "2026-10-26T01:30:00+00:00"),  # 02:30 comes twice
    ],
)
def test_times_follow_the_clock_of_their_zone(cron: str, zone: str, after: str, due: str) -> None:
    assert next_time(cron, zone, after=datetime.fromisoformat(after)) == datetime.fromisoformat(due)


def test_a_cron_line_of_any_length_is_refused_in_words() -> None:
    assert time_problems(f"0 3 {'1,' * 50_000}1 * *", "UTC", now=NOW) == {"cron": "Must be at most 100 characters."}


@pytest.mark.parametrize("cron", ["0 3 * * *", "*/10 * * * *", "15 4 1 * *"])
def test_the_latest_time_is_the_one_before_the_next(cron: str) -> None:
    latest = latest_time(cron, "Europe/Berlin", until=NOW)
    assert latest <= NOW < next_time(cron, "Europe/Berlin", after=latest)
    assert latest_time(cron, "Europe/Berlin", until=latest) == latest
    assert latest_time(cron, "Europe/Berlin", until=latest - timedelta(microseconds=1)) < latest


@pytest.mark.parametrize(
    ("cron", "zone", "field"),
    [
        ("0 3 * *", "UTC", "cron"),
        ("0 3 * * * *", "UTC", "cron"),
        ("0 25 * * *", "UTC", "cron"),
        ("0 0 31 2 *", "UTC", "cron"),
        ("* * * * *", "UTC", "cron"),
        ("0,5 3 * * *", "UTC", "cron"),
        ("0 3 * * *", "Mars/Olympus", "time_zone"),
        ("0 3 * * *", "../etc/passwd", "time_zone"),
    ],
)
def test_times_that_are_none_are_refused_by_field(cron: str, zone: str, field: str) -> None:
    assert time_problems(cron, zone, now=NOW).keys() == {field}
    assert time_problems("*/10 * * * *", "UTC", now=NOW) == {}


def test_making_a_schedule_starts_nothing_yet(new_schedule: NewSchedule) -> None:
    schedule = new_schedule()
    assert schedule.next_at is not None
    assert timezone.now() < schedule.next_at <= timezone.now() + timedelta(days=1)
    reconcile()
    assert not RunRecord.objects.exists()


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_schedule_is_due_by_the_databases_clock_whatever_that_of_who_makes_it(
    new_schedule: NewSchedule, hours: int
) -> None:
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=hours), tick=True):
        made = new_schedule(cron="*/10 * * * *")
    assert made.next_at is not None
    assert timedelta(0) < made.next_at - timezone.now() <= timedelta(minutes=10)


def test_a_due_schedule_starts_its_run_once_as_its_person(new_schedule: NewSchedule) -> None:
    schedule = new_schedule()
    due_at = come_due(schedule)
    reconcile()
    reconcile()
    [start] = starts(schedule)
    assert start.run is not None
    assert (start.due_at, start.missed_since, start.problem) == (due_at, None, "")
    assert (start.run.created_by, start.run.labels) == (schedule.created_by, {"schedule": "nightly"})
    schedule.refresh_from_db()
    assert schedule.next_at == next_time(schedule.cron, "UTC", after=timezone.now())


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_one_moment_start_it_once(new_schedule: NewSchedule) -> None:
    schedule = new_schedule()
    come_due(schedule)

    def sweep(_: int) -> bool:
        try:
            return start_due(schedule.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(sweep, range(4))) == 1
    assert RunRecord.objects.count() == 1


def test_what_was_missed_is_made_up_for_once(new_schedule: NewSchedule) -> None:
    schedule = new_schedule()
    missed_since = come_due(schedule, ago=timedelta(days=5))
    assert start_due(schedule.pk)
    [start] = starts(schedule)
    assert start.missed_since == missed_since
    assert start.due_at == latest_time(schedule.cron, "UTC", until=timezone.now())
    assert RunRecord.objects.count() == 1


def test_a_probe_is_started_likewise(new_schedule: NewSchedule, order: dict[str, Any]) -> None:
    probe = {"endpoint": order["endpoint"], "kind": "canary", "profile": "pinned", "parameters": {"prompts": 2}}
    schedule = new_schedule(kind="probe", order=probe)
    come_due(schedule)
    assert start_due(schedule.pk)
    assert starts(schedule)[0].probe == ProbeRecord.objects.get(kind="canary")


def test_nothing_is_started_while_the_one_before_has_not_ended(new_schedule: NewSchedule) -> None:
    schedule = new_schedule(cron="*/10 * * * *")
    come_due(schedule)
    start_due(schedule.pk)
    a_day_passes(schedule)
    start_due(schedule.pk)
    newest, first = starts(schedule)
    assert newest.problem == f"What it started before, run {first.run_id}, has not ended."
    assert RunRecord.objects.count() == 1


def test_three_refused_in_a_row_are_failing_until_one_starts(new_schedule: NewSchedule) -> None:
    schedule = new_schedule()
    grant_role(user=schedule.created_by, role="viewer")
    for _ in range(3):
        a_day_passes(schedule)
        start_due(schedule.pk)
    [row] = schedule_rows()
    assert (row.n_failures, row.is_failing, len(row.starts)) == (3, True, 3)
    assert row.starts[0].problem == "ada, who made the schedule, may not start runs any more."
    grant_role(user=schedule.created_by, role="engineer")
    a_day_passes(schedule)
    start_due(schedule.pk)
    assert schedule_rows()[0].is_failing is False


def test_a_fault_costs_one_time_and_not_the_schedule(new_schedule: NewSchedule, monkeypatch: Any) -> None:
    def fail(**order: Any) -> RunRecord:
        create_run(**order)
        raise MemoryError("no room")

    schedule = new_schedule()
    come_due(schedule)
    monkeypatch.setattr("runs.schedules.schedules.create_run", fail)
    reconcile()
    assert starts(schedule)[0].problem == "MemoryError: no room"
    assert not RunRecord.objects.exists(), "half a run stayed"


def test_a_pause_leaves_out_what_would_have_come(new_schedule: NewSchedule) -> None:
    schedule = new_schedule()
    come_due(schedule)
    pause_schedule(schedule_id=schedule.pk)
    reconcile()
    resume_schedule(schedule_id=schedule.pk)
    reconcile()
    assert starts(schedule) == []
    schedule.refresh_from_db()
    assert schedule.next_at is not None
    assert schedule.next_at > timezone.now()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"slug": "Nightly run"}, InvalidInput),
        ({"cron": "often"}, InvalidInput),
        ({"order": {"suite": "no-such", "endpoint": "local", "profile": "pinned"}}, NotFound),
        ({"order": {"suite": "colours", "endpoint": "local", "profile": "pinned", "repeats": 0}}, InvalidInput),
        ({"kind": "probe", "order": {"endpoint": "local", "kind": "weather", "parameters": {}}}, InvalidInput),
    ],
)
def test_what_could_not_start_is_refused_when_it_is_made(
    new_schedule: NewSchedule, changes: dict[str, Any], problem: type[EvalboardError]
) -> None:
    with pytest.raises(problem):
        new_schedule(**changes)
    assert not any(kind.objects.exists() for kind in (ScheduleRecord, RunRecord, ProbeRecord))


def test_one_slug_is_one_schedule(new_schedule: NewSchedule) -> None:
    new_schedule()
    with pytest.raises(Conflict):
        new_schedule()


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 3 * * 1", "every Monday 03:00"),
        ("5 14 * * 0", "every Sunday 14:05"),
        ("5 14 * * 7", "every Sunday 14:05"),
        ("30 2 * * *", "every day 02:30"),
        ("0 3 1 * *", "at 03:00 on the first day of every month"),
    ],
)
def test_times_are_said_in_words(cron: str, words: str) -> None:
    assert describe_times(cron) == words
