"""Schedules over the API."""

from typing import Any

import pytest

from runs.models import RunRecord
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db


@pytest.fixture
def body() -> dict[str, Any]:
    build.suite()
    run = {"suite": "colours", "endpoint": build.endpoint(), "profile": build.profile(), "repeats": 2}
    return {"slug": "nightly", "cron": "0 3 * * 1-5", "time_zone": "Europe/Berlin", "run": run}


def test_a_schedule_is_made_paused_resumed_and_deleted(api: Api, body: dict[str, Any]) -> None:
    made = api.post("/schedules/", body)
    assert made.status_code == 201
    row = made.json()
    assert (row["slug"], row["cron"], row["time_zone"]) == ("nightly", "0 3 * * 1-5", "Europe/Berlin")
    assert row["run"] == {**body["run"], "suite_version": None, "seed": None, "labels": None, "priority": None}
    assert (row["probe"], row["starts"], row["is_failing"]) == (None, [], False)
    assert made.headers["Location"].endswith(f"/schedules/{row['id']}/")
    assert api.get(f"/schedules/{row['id']}/").json() == api.get("/schedules/").json()["results"][0] == row
    assert api.post(f"/schedules/{row['id']}/pause/").json()["next_at"] is None
    assert api.post(f"/schedules/{row['id']}/resume/").json()["next_at"] == row["next_at"]
    assert api.delete(f"/schedules/{row['id']}/").status_code == 204
    assert api.get(f"/schedules/{row['id']}/").status_code == 404
    assert not RunRecord.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cron": "soon"}, "cron"),
        ({"time_zone": "Berlin"}, "time_zone"),
        ({"run": None}, "run"),
        ({"probe": {"endpoint": "local", "kind": "seed"}}, "run"),
        ({"every": "day"}, "every"),
    ],
)
def test_what_is_no_schedule_is_refused_by_its_field(
    api: Api, body: dict[str, Any], changes: dict[str, Any], field: str
) -> None:
    refused = api.post("/schedules/", {**body, **changes})
    assert refused.status_code == 400
    assert field in refused.json()["fields"]


def test_what_is_wrong_with_its_run_stands_under_run(api: Api, body: dict[str, Any]) -> None:
    refused = api.post("/schedules/", {**body, "run": {**body["run"], "repeats": 0}})
    assert list(refused.json()["fields"]) == ["run.repeats"]
