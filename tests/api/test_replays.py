"""`/runs/{id}/replays/` and `/replays/{id}/`."""

from typing import Any

import pytest

from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile
from runs.models import ReplayRecord, RunRecord
from runs.replays import claim_replay, finish_replay, record_result
from tests import build
from tests.api.conftest import Api
from tests.casts import cast
from tests.runs.test_replays import result


@cast
def run() -> RunRecord:
    return build.finished_run()


def finish(replay_id: str) -> None:
    """Decode it as a worker would."""
    lease = claim_replay(worker=build.worker("replayer"))
    assert lease is not None
    replay = ReplayRecord.objects.get(pk=replay_id)
    for variant in replay.variants:
        record_result(lease=lease, result=result(variant, has_response=replay.run is not None))
    finish_replay(lease=lease)


def test_a_replay_is_asked_for_and_followed_to_its_end(api: Api, run: RunRecord) -> None:
    asked = api.post(f"/runs/{run.pk}/replays/", {"case": "a/b c", "repeat": 2, "batch_sizes": [1, 2]})
    body = asked.json()
    assert asked.status_code == 201
    assert asked["Location"].endswith(f"/api/v1/replays/{body['id']}/")
    assert (body["run"], body["repeat"], body["case"], body["status"]) == (str(run.pk), 2, "a/b c", "queued")
    assert (body["variants"], body["results"], body["reading"]) == ([{"batch_size": 1}, {"batch_size": 2}], [], [])
    assert (body["created_by"], body["error"], body["finished_at"]) == ("root", None, None)
    assert body["url"].endswith(f"/runs/{run.pk}/repeats/2/cases/a/b%20c/")
    finish(body["id"])
    ended = api.get(asked["Location"]).json()
    assert (ended["status"], ended["reading"]) == ("finished", ["Identical at every batch size from 1 to 2."])
    assert [each["name"] for each in ended["results"]] == ["batch size 1", "batch size 2"]
    assert ended["results"][0]["phrase"] == "identical"
    assert "trace" not in ended["results"][0]
    assert ended["finished_at"].endswith("Z")


def test_the_least_that_must_be_said_is_the_case(api: Api, run: RunRecord) -> None:
    body = api.post(f"/runs/{run.pk}/replays/", {"case": "sky"}).json()
    assert (body["repeat"], body["variants"]) == (1, [{}])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "case"),
        ({"case": 7}, "case"),
        ({"case": "sky", "speed": 1}, "speed"),
        ({"case": "sky", "repeat": "2"}, "repeat"),
        ({"case": "sky", "repeat": 9}, "repeat"),
        ({"case": "sky", "batch_sizes": 4}, "batch_sizes"),
        ({"case": "sky", "batch_sizes": ["4"]}, "batch_sizes[0]"),
        ({"case": "sky", "batch_sizes": [1000]}, "batch_sizes"),
        ({"case": "sky", "dtypes": ["float8"]}, "dtypes"),
        ({"case": "sky", "neighbours": 2}, "neighbours"),
    ],
)
def test_what_is_wrong_is_named(api: Api, run: RunRecord, body: dict[str, Any], field: str) -> None:
    refused = api.post(f"/runs/{run.pk}/replays/", body)
    assert refused.status_code == 400
    assert list(refused.json()["fields"]) == [field]
    assert not ReplayRecord.objects.exists()


def test_what_is_not_there_is_404(api: Api, run: RunRecord) -> None:
    assert api.get("/replays/999/").status_code == 404
    assert api.get("/runs/999/replays/").status_code == 404
    assert api.post("/runs/999/replays/", {"case": "sky"}).status_code == 404
    missing = api.post(f"/runs/{run.pk}/replays/", {"case": "desert"})
    assert (missing.status_code, missing.json()["detail"]) == (404, f"The suite of run {run.pk} has no case desert.")


def test_replays_of_a_run_come_newest_first_in_pages(api: Api, run: RunRecord) -> None:
    asked = [api.post(f"/runs/{run.pk}/replays/", {"case": "sky"}).json()["id"] for _ in range(3)]
    first = api.get(f"/runs/{run.pk}/replays/?page_size=2").json()
    assert [each["id"] for each in first["results"]] == [asked[2], asked[1]]
    second = api.get(first["next"]).json()
    assert [each["id"] for each in second["results"]] == [asked[0]]
    assert [each["id"] for each in api.get(second["previous"]).json()["results"]] == [asked[2], asked[1]]


def test_the_same_fields_come_for_an_answer_and_for_none(api: Api, run: RunRecord) -> None:
    body = api.post(f"/runs/{run.pk}/replays/", {"case": "sky", "batch_sizes": [1, 2]}).json()
    lease = claim_replay(worker=build.worker("replayer"))
    assert lease is not None
    record_result(lease=lease, result=result({"batch_size": 1}))
    record_result(lease=lease, result=result({"batch_size": 2}, error="no memory"))
    answered, failed = api.get(f"/replays/{body['id']}/").json()["results"]
    assert answered.keys() == failed.keys()
    assert (answered["error"], failed["error"]) == (None, {"code": "engine_error", "detail": "no memory"})


BODY = {"messages": [{"role": "user", "content": "Name a colour."}], "temperature": 0.7, "max_tokens": 8, "n": 2}


def test_a_request_of_production_is_decoded_and_labelled(api: Api, run: RunRecord) -> None:
    asked = api.post("/replays/", {"endpoint": "local", "profile": "pinned", "body": BODY})
    body = asked.json()
    assert asked.status_code == 201
    assert asked["Location"].endswith(f"/api/v1/replays/{body['id']}/")
    assert (body["run"], body["repeat"], body["case"], body["status"]) == (None, None, None, "queued")
    assert body["url"].endswith(f"/replays/{body['id']}/")
    production = body["production"]
    assert (production["endpoint"], production["profile"], production["profile_version"]) == ("local", "pinned", 1)
    assert (production["not_sent"], production["answer"]) == (["n"], None)
    finish(body["id"])
    ended = api.get(asked["Location"]).json()
    assert ended["reading"][0] == "Decoded once under pinned: 2 tokens, ended by stop."
    answer = ended["production"]["answer"]
    assert (answer["text"], answer["trace"]["length"]) == ("blue", 2)
    assert [len(each["alternatives"]) for each in answer["trace"]["positions"]] == [2, 2]
    assert {"text", "trace", "sampling"}.isdisjoint(ended["results"][0])
    [listed] = api.get("/replays/").json()["results"]
    assert (listed["id"], listed["production"]["answer"]["trace"]) == (body["id"], None)


def test_a_case_under_another_profile_is_production_and_under_the_run_s_own_it_is_not(api: Api, run: RunRecord) -> None:
    create_profile(slug="warm", title="", settings=DEFAULT_PROFILES["fast"]["settings"])
    own = api.post(f"/runs/{run.pk}/replays/", {"case": "sky", "profile": "pinned"}).json()
    other = api.post(f"/runs/{run.pk}/replays/", {"case": "sky", "profile": "warm"}).json()
    assert own["production"] is None
    assert other["production"]["profile"] == "warm"
    assert (other["run"], other["case"]) == (str(run.pk), "sky")
    assert [each["id"] for each in api.get("/replays/").json()["results"]] == [other["id"]]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"body": {}}, "body.messages"),
        ({"body": [1]}, "body"),
        ({"body": BODY | {"messages": "hi"}}, "body.messages"),
        ({"body": BODY | {"max_tokens": 9_000}}, "body.max_tokens"),
        ({"endpoint": 7}, "endpoint"),
        ({"case": "sky"}, "case"),
    ],
)
def test_what_is_wrong_with_a_request_is_named(api: Api, run: RunRecord, changes: dict[str, Any], field: str) -> None:
    refused = api.post("/replays/", {"endpoint": "local", "profile": "pinned", "body": BODY, **changes})
    assert refused.status_code == 400
    assert list(refused.json()["fields"]) == [field]
    for name in ("endpoint", "profile"):
        known = {"endpoint": "local", "profile": "pinned", "body": BODY}
        assert api.post("/replays/", {**known, name: "nowhere"}).status_code == 404
    assert not ReplayRecord.objects.exists()
