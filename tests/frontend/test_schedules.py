"""The page of schedules, and what the board says of them."""

import pytest
from django.test import Client

from runs.models import EndpointRecord, RunRecord, ScheduleRecord
from runs.schedules import start_due
from tests.frontend import stage

RUN = {
    "run-slug": "nightly",
    "run-suite": stage.SLUG,
    "run-endpoint": "local",
    "run-profile": "pinned",
    "run-repeats": "2",
    "run-cron": "0 3 * * 1-5",
    "run-time_zone": "Europe/Berlin",
}
PROBE = {
    "probe-slug": "weekly",
    "probe-endpoint": "local",
    "probe-probe_kind": "canary",
    "probe-cron": "0 4 * * 1",
    "probe-time_zone": "UTC",
}


@pytest.fixture(autouse=True)
def staged(settings: object, db: None) -> None:
    stage.stage(model_root=settings.MODEL_ROOTS[0])  # type: ignore[attr-defined]


def test_a_run_and_a_probe_are_scheduled_and_shown(engineer: Client) -> None:
    assert "No schedules yet" in engineer.get("/schedules/").content.decode()
    assert engineer.post("/schedules/", RUN).status_code == engineer.post("/schedules/", PROBE).status_code == 302
    page = engineer.get("/schedules/").content.decode()
    for words in ("at 03:00 on Monday through Friday, Europe/Berlin", "2 repeats", "a canary probe of"):
        assert words in page
    assert ScheduleRecord.objects.filter(kind="probe").get().order["kind"] == "canary"


def test_without_an_endpoint_that_answers_nothing_can_be_scheduled(engineer: Client) -> None:
    EndpointRecord.objects.update(engine=EndpointRecord.Engine.IMPORTED)
    page = engineer.get("/schedules/").content.decode()
    assert "A probe needs an endpoint that answers" in page
    assert "Schedule the" not in page


def test_what_is_wrong_stands_at_its_field(engineer: Client) -> None:
    refused = engineer.post("/schedules/", {**RUN, "run-cron": "* * * * *", "run-time_zone": "Berlin"})
    assert refused.status_code == 422
    assert "Must be a name of the IANA list" in refused.content.decode()
    refused = engineer.post("/schedules/", {**PROBE, "probe-cron": "* * * * *"})
    assert "10 minutes apart" in refused.content.decode()
    assert not ScheduleRecord.objects.exists()


def test_it_is_paused_resumed_and_deleted_by_buttons(engineer: Client) -> None:
    engineer.post("/schedules/", RUN)
    pk = ScheduleRecord.objects.get().pk
    engineer.post(f"/schedules/{pk}/pause/")
    assert "paused; resume it to continue" in engineer.get("/schedules/").content.decode()
    engineer.post(f"/schedules/{pk}/resume/")
    assert ScheduleRecord.objects.get().next_at is not None
    engineer.post(f"/schedules/{pk}/delete/")
    assert not ScheduleRecord.objects.exists()


def test_who_may_only_look_sees_no_buttons(viewer: Client, engineer: Client) -> None:
    engineer.post("/schedules/", RUN)
    page = viewer.get("/schedules/").content.decode()
    assert "nightly" in page
    assert "Pause" not in page
    assert "Schedule a run" not in page
    assert viewer.post("/schedules/", RUN).status_code == 403


@pytest.mark.nightly
def test_the_board_has_the_last_the_next_and_the_failing(engineer: Client) -> None:
    assert "All schedules" not in engineer.get("/").content.decode()
    engineer.post("/schedules/", RUN)
    schedule = ScheduleRecord.objects.get()
    ScheduleRecord.objects.update(next_at=schedule.created_at)
    start_due(schedule.pk)
    page = engineer.get("/").content.decode()
    assert f"run {RunRecord.objects.get().pk}" in page
    assert "Next by schedule:" in page
    assert "starts in a row were refused" not in page
    ScheduleRecord.objects.update(n_failures=3)
    assert "3 starts in a row were refused" in engineer.get("/").content.decode()
