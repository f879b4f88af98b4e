"""`/suites/{slug}/baselines/`."""

from collections.abc import Callable
from typing import Any

import pytest

from runs.models import BaselineRecord, RunRecord
from tests import build
from tests.api.conftest import Api
from tests.casts import cast

PATH = "/suites/colours/baselines/"


@cast
def run() -> RunRecord:
    return build.finished_run()


def rotated(by_dtype: str = "bfloat16") -> RunRecord:
    """A further run on the same endpoint and profile, bound as a worker binds it to another stack."""
    from runs.catalogue.rotations import note_rotation

    made = build.finished_run(by=build.process(build.bucket(by_dtype)))
    made.refresh_from_db()
    note_rotation(shown_by=made)
    return made


def test_a_baseline_is_set_with_a_reason_and_listed(api: Api, run: RunRecord) -> None:
    answer = api.post(PATH, {"run": str(run.pk), "reason": "As shipped."})
    assert answer.status_code == 201
    assert answer["Location"].endswith(f"/api/v1{PATH}")
    body = answer.json()
    assert (body["suite"], body["line"], body["profile"]) == ("colours", "paint", "pinned")
    assert (body["reason"], body["set_by"], body["is_current"], body["expired"]) == ("As shipped.", "root", True, None)
    assert (body["run"]["id"], body["run"]["range"]) == (str(run.pk), [pytest.approx(100 / 3), pytest.approx(200 / 3)])
    assert api.get(PATH).json()["results"] == [body]


def test_the_history_stays_and_the_newest_is_current(api: Api, run: RunRecord) -> None:
    other = build.finished_run()
    for each in (run, other):
        assert api.post(PATH, {"run": each.pk, "reason": "Better."}).status_code == 201
    listed = api.get(f"{PATH}?page_size=1").json()
    assert [(row["run"]["id"], row["is_current"]) for row in listed["results"]] == [(str(other.pk), True)]
    older = api.get(listed["next"]).json()["results"]
    assert [(row["run"]["id"], row["is_current"]) for row in older] == [(str(run.pk), False)]


def test_an_expired_one_says_by_which_rotation(api: Api, run: RunRecord) -> None:
    api.post(PATH, {"run": run.pk, "reason": "As shipped."})
    later = rotated()
    [row] = api.get(PATH).json()["results"]
    assert row["is_current"] is True
    assert (row["expired"]["run"], row["expired"]["endpoint"]) == (str(later.pk), "local")
    assert row["expired"]["before"]["label"].endswith("float32")
    assert row["expired"]["after"]["label"].endswith("bfloat16")
    again = api.post(PATH, {"run": run.pk, "reason": "I like it."})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "run"),
        ({"run": "RUN"}, 400, "reason"),
        ({"run": "RUN", "reason": " "}, 400, "reason"),
        ({"run": "RUN", "reason": 7}, 400, "reason"),
        ({"run": "RUN", "reason": "x", "line": "paint"}, 400, "line"),
        ({"run": "current", "reason": "x"}, 400, "run"),
        ({"run": True, "reason": "x"}, 400, "run"),
        ({"run": -1, "reason": "x"}, 400, "run"),
        ({"run": "1" * 19, "reason": "x"}, 400, "run"),
        ({"run": "999999", "reason": "x"}, 404, ""),
    ],
)
def test_what_is_no_baseline_is_refused(
    api: Api, run: RunRecord, body: dict[str, Any], status: int, field: str
) -> None:
    sent = {name: str(run.pk) if value == "RUN" else value for name, value in body.items()}
    answer = api.post(PATH, sent)
    assert answer.status_code == status
    assert not field or field in answer.json()["fields"]
    assert not BaselineRecord.objects.exists()


def test_a_run_of_another_suite_or_at_work_is_refused(api: Api, run: RunRecord) -> None:
    other = build.finished_run(version=build.suite("shapes"))
    assert "run" in api.post(PATH, {"run": other.pk, "reason": "x"}).json()["fields"]
    assert api.post(PATH, {"run": build.run().pk, "reason": "x"}).status_code == 409
    assert api.post("/suites/nothing/baselines/", {"run": run.pk, "reason": "x"}).status_code == 404
    assert api.get("/suites/nothing/baselines/").status_code == 404


@pytest.mark.parametrize(
    ("role", "status"),
    [("anonymous", 401), ("viewer", 403), ("engineer", 403), ("release manager", 201), ("admin", 201)],
)
def test_who_may_sign_may_set_one(as_role: Callable[[str], Api], run: RunRecord, role: str, status: int) -> None:
    assert as_role(role).post(PATH, {"run": run.pk, "reason": "As shipped."}).status_code == status
    assert BaselineRecord.objects.exists() == (status == 201)


def test_a_run_that_a_baseline_rests_on_is_not_deleted(api: Api, run: RunRecord) -> None:
    api.post(PATH, {"run": run.pk, "reason": "As shipped."})
    assert api.delete(f"/runs/{run.pk}/").status_code == 409
    assert RunRecord.objects.filter(pk=run.pk).exists()
