"""/runs/: asked for, read, filtered, cancelled, extended, scored again, deleted."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings

from runs.models import ResponseRecord, RunRecord, TraceBlock
from tests import build
from tests.api.conftest import Api
from tests.nightly import few

pytestmark = pytest.mark.django_db

# The contract of docs/api-reference.md: CI reads these names.
RUN_FIELDS = {
    "id", "suite", "endpoint", "profile", "status", "progress", "repeats", "range", "buckets", "noise", "pins",
    "warnings", "errors", "labels", "created_at", "started_at", "finished_at", "url",
}  # fmt: skip


@pytest.fixture
def asked() -> dict[str, Any]:
    build.suite()
    build.endpoint()
    build.profile()
    return {"suite": "colours", "endpoint": "local", "profile": "pinned", "repeats": 2}


def test_a_run_is_asked_for(api: Api, asked: dict[str, Any]) -> None:
    answer = api.post("/runs/", {**asked, "labels": {"commit": "1f3a", "branch": "main"}})
    assert answer.status_code == 201
    body = answer.json()
    assert body.keys() >= RUN_FIELDS
    assert answer["Location"].endswith(f"/api/v1/runs/{body['id']}/")
    assert api.get(answer["Location"]).json() == body
    assert (body["status"], body["progress"]["n_total"], body["range"]) == ("queued", 6, None)
    assert body["labels"] == {"commit": "1f3a", "branch": "main"}
    assert body["created_by"] == "root"
    assert body["pins"] == {"held": None, "broken": []}
    assert body["url"].endswith(f"/runs/{body['id']}/")


def test_a_run_that_samples_says_how_and_may_be_given_a_seed(api: Api, asked: dict[str, Any]) -> None:
    build.profile("sampled")
    body = api.post("/runs/", {**asked, "profile": "sampled", "seed": 7}).json()
    assert body["sampled"] == {"temperature": 0.7, "seed": 7, "is_one_draw": False}
    assert api.post("/runs/", {**asked, "profile": "sampled"}).json()["sampled"]["seed"] == 42
    assert api.post("/runs/", asked).json()["sampled"] is None
    assert api.get("/runs/").json()["results"][1]["sampled"]["seed"] == 42


def test_both_sides_are_asked_for_at_once(api: Api, asked: dict[str, Any]) -> None:
    answer = api.post("/runs/pairs/", {"baseline": asked, "candidate": {**asked, "labels": {"commit": "1f3a"}}})
    assert answer.status_code == 201
    body = answer.json()
    for side in ("baseline", "candidate"):
        assert api.get(f"/runs/{body[side]['id']}/").json() == body[side]
    assert body["candidate"]["labels"] == {"commit": "1f3a"}
    refused = api.post("/runs/pairs/", {"baseline": asked, "candidate": {**asked, "repeats": 0}})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["candidate.repeats"])
    assert RunRecord.objects.count() == 2


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "7", True])
def test_a_seed_that_is_none_is_refused(api: Api, asked: dict[str, Any], seed: Any) -> None:
    build.profile("sampled")
    answer = api.post("/runs/", {**asked, "profile": "sampled", "seed": seed})
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["seed"])


def test_five_repeats_are_asked_for_unless_said_otherwise(api: Api, asked: dict[str, Any]) -> None:
    del asked["repeats"]
    assert len(api.post("/runs/", asked).json()["repeats"]) == 5


def test_ids_are_strings_and_times_are_utc(api: Api) -> None:
    body = api.get(f"/runs/{build.finished_run().pk}/").json()
    bucket = body["buckets"][0]
    assert all(isinstance(found, str) for found in (body["id"], bucket["id"], bucket["fingerprint"]["id"]))
    for name in ("created_at", "started_at", "finished_at"):
        assert body[name].endswith("Z")
        assert datetime.fromisoformat(body[name]).tzinfo is not None


def test_a_finished_run_says_its_range_buckets_and_noise(api: Api) -> None:
    body = api.get(f"/runs/{build.finished_run().pk}/").json()
    low, high = pytest.approx(100 / 3), pytest.approx(200 / 3)
    assert body["range"] == [low, high]
    assert [(line["index"], line["status"], line["score"]) for line in body["repeats"]] == [
        (1, "finished", high),
        (2, "finished", low),
    ]
    [bucket] = body["buckets"]
    assert (bucket["n_responses"], bucket["share"], bucket["range"]) == (6, 1.0, [low, high])
    assert [line["n_responses"] for line in bucket["repeats"]] == [3, 3]
    assert body["noise"]["n_unstable"] == 1
    assert body["errors"]["n"] == 0
    assert body["pins"] == {"held": True, "broken": []}
    assert {warning["code"] for warning in body["warnings"]} == {"coarse_suite", "one_process", "unsteady"}


def test_a_run_tells_the_seats_that_its_processes_got(api: Api) -> None:
    run = build.finished_run()
    process = run.repeats.first().engine_processes.get()
    process.manifest = {"engine": {"max_num_seqs": 64, "seats": 9, "max_model_len": 8192}}
    process.save()
    body = api.get(f"/runs/{run.pk}/").json()
    assert body["seats"] == [{"engine_process": str(process.pk), "asked": 64, "got": 9}]


def test_a_run_at_work_has_no_range_yet(api: Api) -> None:
    run = build.run(repeats=2)
    build.decode(run, 1, ("blue", "blue", "red"))
    body = api.get(f"/runs/{run.pk}/").json()
    assert (body["status"], body["range"], body["buckets"][0]["range"]) == ("running", None, None)
    assert body["repeats"][0]["score"] == pytest.approx(200 / 3)
    assert api.get("/runs/").json()["results"][0]["range"] is None


def test_an_incomplete_run_has_no_range(api: Api) -> None:
    body = api.get(f"/runs/{build.finished_run(('blue', None, 'red')).pk}/").json()
    assert (body["status"], body["range"], body["repeats"][0]["score"]) == ("incomplete", None, None)
    assert body["errors"] == {"n": 1, "by_code": {"prompt_too_long": 1}, "last": None}


def test_a_second_run_with_the_same_bits_names_the_first(api: Api) -> None:
    by = build.process()
    first, second = build.finished_run(by=by), build.finished_run(by=by)
    assert api.get(f"/runs/{second.pk}/").json()["twin"] == {"run": str(first.pk), "n_equal": 6, "n_compared": 6}


@pytest.mark.parametrize("name", ["suite", "endpoint", "profile"])
def test_a_name_that_does_not_exist_is_not_found(api: Api, asked: dict[str, Any], name: str) -> None:
    answer = api.post("/runs/", {**asked, name: "nothing"})
    assert (answer.status_code, "nothing" in answer.json()["detail"]) == (404, True)
    assert not RunRecord.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"repeats": 0}, "repeats"),
        ({"repeats": 101}, "repeats"),
        ({"repeats": "5"}, "repeats"),
        ({"repeats": True}, "repeats"),
        ({"repeats": 2.5}, "repeats"),
        ({"suite": 7}, "suite"),
        ({"suite": None}, "suite"),
        ({"labels": ["main"]}, "labels"),
        ({"labels": {"branch": 7}}, "labels.branch"),
        ({"model": {"path": "/etc/passwd"}}, "model.path"),
        ({"model": {"repo": "a/b", "revision": "main"}}, "model.revision"),
        ({"model": {}}, "model"),
        ({"model": "paint-1b"}, "model"),
    ],
)
def test_what_is_wrong_with_a_run_is_named(
    api: Api, asked: dict[str, Any], changes: dict[str, Any], field: str
) -> None:
    answer = api.post("/runs/", {**asked, **changes})
    assert (answer.status_code, answer.json()["fields"].keys()) == (400, {field})
    assert not RunRecord.objects.exists()


def test_another_checkpoint_of_the_line_may_be_named(api: Api, asked: dict[str, Any]) -> None:
    path = str(settings.MODEL_ROOTS[0] / "paint-1b-v2")
    body = api.post("/runs/", {**asked, "model": {"path": path}}).json()
    assert body["model"] == "paint-1b-v2"


def test_an_older_version_of_the_suite_may_be_named(api: Api, asked: dict[str, Any]) -> None:
    build.suite(case_ids=["other"])
    assert api.post("/runs/", asked).json()["suite"]["version"] == 2
    assert api.post("/runs/", {**asked, "suite_version": 1}).json()["suite"]["version"] == 1


def test_a_profile_that_no_worker_can_honour_is_refused(api: Api, asked: dict[str, Any]) -> None:
    build.profile("invariant")
    build.worker(hardware={"kind": "cpu"})
    answer = api.post("/runs/", {**asked, "profile": "invariant"})
    assert (answer.status_code, answer.json()["code"]) == (422, "profile_refused")


@pytest.mark.parametrize(
    ("query", "n"),
    few(
        [
            ("suite=colours", 2),
            ("suite=nothing", 0),
            ("endpoint=local", 2),
            ("status=finished", 1),
            ("status=failed", 0),
            ("label=branch", 1),
            ("label=branch%3Dmain", 1),
            ("date=2026-01-31", 1),
            ("date=2026-01-01..2026-01-31", 1),
            ("date=2026-02-01", 0),
            ("bucket=999999", 0),
        ],
        5,
    ),
)
def test_runs_are_filtered(api: Api, query: str, n: int) -> None:
    old = build.run(labels={"branch": "main"})
    build.finished_run()
    RunRecord.objects.filter(pk=old.pk).update(ran_at=datetime(2026, 1, 31, 23, 59, tzinfo=UTC))
    assert len(api.get(f"/runs/?{query}").json()["results"]) == n


def test_runs_of_one_bucket_are_found_by_its_id(api: Api) -> None:
    run = build.finished_run()
    build.run()
    bucket = api.get(f"/runs/{run.pk}/").json()["buckets"][0]["id"]
    assert [found["id"] for found in api.get(f"/runs/?bucket={bucket}").json()["results"]] == [str(run.pk)]


def test_a_run_is_cancelled_once_and_stays_so(api: Api) -> None:
    run = build.run()
    assert api.post(f"/runs/{run.pk}/cancel/").json()["status"] == "cancelled"
    assert api.post(f"/runs/{run.pk}/cancel/").status_code == 200


def test_a_run_that_has_ended_cannot_be_cancelled(api: Api) -> None:
    assert api.post(f"/runs/{build.finished_run().pk}/cancel/").status_code == 409


def test_repeats_are_added(api: Api) -> None:
    run = build.finished_run()
    body = api.post(f"/runs/{run.pk}/repeats/", {"n": 3}).json()
    assert (body["status"], len(body["repeats"]), body["range"]) == ("queued", 5, None)


@pytest.mark.parametrize("n", [0, 100, None, "3"])
def test_repeats_that_cannot_be_added_are_refused(api: Api, n: Any) -> None:
    answer = api.post(f"/runs/{build.run().pk}/repeats/", {"n": n})
    assert (answer.status_code, answer.json()["fields"].keys()) == (400, {"n"})


def test_stored_responses_are_scored_again_and_both_scores_stay(api: Api) -> None:
    run = build.finished_run(("blue", "blue", "red"))
    sent = {"scorer": {"kind": "contains"}, "cases": {"a/b c": {"kind": "regex", "pattern": "red"}}}
    answer = api.post(f"/runs/{run.pk}/rescore/", sent)
    assert answer.status_code == 200
    own, other = answer.json()["run"]["scores"]
    assert (own["scorer"]["is_own"], own["repeats"]) == (True, [pytest.approx(200 / 3)])
    assert (other["scorer"]["id"], other["repeats"]) == (answer.json()["scorer"]["id"], [100.0])
    assert answer.json()["run"]["range"] == own["range"]


@pytest.mark.parametrize(
    "body", few([{}, {"scorer": {"kind": "guess"}}, {"cases": {"no such case": {"kind": "exact"}}}], 1)
)
def test_a_scorer_that_is_none_changes_nothing(api: Api, body: dict[str, Any]) -> None:
    run = build.finished_run()
    assert api.post(f"/runs/{run.pk}/rescore/", body).status_code in (400, 404)
    assert len(api.get(f"/runs/{run.pk}/").json()["scores"]) == 1


def test_a_run_is_deleted_with_all_that_it_stored(api: Api) -> None:
    run = build.finished_run()
    answer = api.delete(f"/runs/{run.pk}/")
    assert (answer.status_code, answer.content) == (204, b"")
    assert api.get(f"/runs/{run.pk}/").status_code == 404
    assert not ResponseRecord.objects.exists()
    assert not TraceBlock.objects.exists()


def test_a_run_at_work_is_not_deleted(api: Api) -> None:
    assert api.delete(f"/runs/{build.run().pk}/").status_code == 409
