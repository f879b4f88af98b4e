"""External servers are checked at their first use and each day from then on, where a person wants it."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from evalboard.core.probes import plan_calls
from evalboard.wording.probe_states import DAILY_CHECK_COST
from runs.models import EndpointRecord, ProbeRecord, RunRecord, ScheduleRecord
from runs.run import create_run
from runs.schedules import delete_schedule, pause_schedule, schedule_check, schedule_rows
from runs.sweep import reconcile
from tests import build, probes

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> Any:
    build.suite()
    build.profile("pinned")
    probes.remote("hosted", daily_check=True)
    return build.user()


def use(endpoint: str = "hosted", *, by: Any) -> RunRecord:
    return create_run(suite="colours", endpoint=endpoint, profile="pinned", repeats=1, user=by)


def checks() -> list[ProbeRecord]:
    return list(ProbeRecord.objects.filter(kind="capability").order_by("pk"))


def test_the_first_use_of_a_server_of_others_has_it_checked_then_and_each_day(person: Any) -> None:
    reconcile()
    assert not ScheduleRecord.objects.exists()  # nobody has used it
    run = use(by=person)
    reconcile()
    [row] = schedule_rows(endpoint="hosted")
    assert (row.slug, row.probe and row.probe.kind, row.created_by) == ("check-hosted", "capability", str(person))
    [probe] = checks()
    assert (probe.endpoint.slug, probe.status, probe.created_by) == ("hosted", "queued", run.created_by)
    assert row.next_at is not None
    assert timedelta(hours=23, minutes=58) < row.next_at - timezone.now() <= timedelta(days=1)
    reconcile()
    assert len(checks()) == 1
    ProbeRecord.objects.update(status="finished")
    yesterday = row.next_at - timedelta(days=1)
    ScheduleRecord.objects.get().starts.update(due_at=yesterday - timedelta(days=1))
    ScheduleRecord.objects.update(next_at=yesterday)
    reconcile()
    assert len(checks()) == 2


def test_one_that_nobody_wants_checked_is_not(person: Any) -> None:
    probes.remote("second")
    use("second", by=person)
    reconcile()
    assert not ScheduleRecord.objects.exists()


def test_the_number_of_calls_is_the_one_that_people_read() -> None:
    assert DAILY_CHECK_COST.startswith(f"Up to {len(plan_calls('capability', {}, ()))} short calls a day")


@pytest.mark.parametrize("stop", [pause_schedule, delete_schedule])
def test_whoever_does_not_want_it_any_more_is_asked_once(person: Any, stop: Any) -> None:
    use(by=person)
    reconcile()
    stop(schedule_id=ScheduleRecord.objects.get().pk)
    ProbeRecord.objects.all().delete()
    use(by=person)
    reconcile()
    assert not checks()
    assert not ScheduleRecord.objects.filter(next_at__isnull=False).exists()


def test_a_probe_is_a_use_and_a_run_of_nobodys_is_none(person: Any) -> None:
    use(by=None)
    reconcile()
    assert not ScheduleRecord.objects.exists()
    probes.ask("canary", on="hosted", parameters={"prompts": 2}, user=person)
    reconcile()
    assert ScheduleRecord.objects.get().created_by == person


def test_an_endpoint_of_ours_and_one_that_has_a_schedule_get_none(person: Any) -> None:
    use(build.endpoint(), by=person)
    probes.remote("second", daily_check=True)
    order = {"endpoint": "second", "kind": "capability", "parameters": {}}
    ScheduleRecord.objects.create(
        slug="mine", kind="probe", order=order, cron="0 3 * * *", time_zone="UTC", created_by=person
    )
    use("second", by=person)
    reconcile()
    assert [row.slug for row in ScheduleRecord.objects.all()] == ["mine"]
    assert not schedule_check(EndpointRecord.objects.get(slug="second").pk)
