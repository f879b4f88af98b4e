"""`/runs/{id}/forced/`, `/forced/{id}/` with its answers and their traces, and `/compare/forced/`."""

from typing import Any

import pytest

from evalboard.core.trace import read_trace
from runs.models import ForcedScoringRecord, RunRecord
from tests import build, forced
from tests.api.conftest import Api
from tests.casts import cast


@cast
def run() -> RunRecord:
    made = build.finished_run()
    build.endpoint("other", dtype="bfloat16")
    return made


def test_a_scoring_is_asked_for_and_followed_to_its_end(api: Api, run: RunRecord) -> None:
    cost = api.get(f"/runs/{run.pk}/forced/cost/").json()
    asked = api.post(f"/runs/{run.pk}/forced/", {"endpoint": "other"})
    body = asked.json()
    assert asked.status_code == 201
    assert asked["Location"].endswith(f"/api/v1/forced/{body['id']}/")
    assert {name: body[name] for name in ("n_answers", "n_tokens")} == {
        name: cost[name] for name in ("n_answers", "n_tokens")
    }
    assert (body["run"], body["endpoint"], body["profile"], body["status"]) == (
        str(run.pk),
        "other",
        "pinned",
        "queued",
    )
    assert (body["figures"], body["reading"], body["bucket"], body["created_by"]) == (None, [], None, "root")
    forced.scored(ForcedScoringRecord.objects.get(pk=body["id"]))
    ended = api.get(asked["Location"]).json()
    assert (ended["status"], ended["n_done"]) == ("finished", body["n_answers"])
    assert ended["figures"]["gap_median"]["value"] == pytest.approx(0.25)
    assert ended["reading"][0].startswith("Over ")
    [listed] = api.get(f"/runs/{run.pk}/forced/").json()["results"]
    assert listed == ended


def test_what_chosen_answers_take_is_what_a_scoring_of_them_has(api: Api, run: RunRecord) -> None:
    for chosen in ({"cases": ["sky", "sea"], "repeats": [2]}, {"tag": "tag-1"}, {}):
        cost = api.post(f"/runs/{run.pk}/forced/cost/", chosen).json()
        scoring = api.post(f"/runs/{run.pk}/forced/", {"endpoint": "other", **chosen}).json()
        assert (cost["n_answers"], cost["n_tokens"]) == (scoring["n_answers"], scoring["n_tokens"])
    before = ForcedScoringRecord.objects.count()
    whole = api.get(f"/runs/{run.pk}/forced/cost/").json()
    assert cost == whole
    assert api.post(f"/runs/{run.pk}/forced/cost/", {"repeats": [2]}).json()["n_answers"] < whole["n_answers"]
    for wrong, field in (({"repeats": [9]}, "repeats"), ({"endpoint": "other"}, "endpoint"), ({"tag": "moon"}, "tag")):
        refused = api.post(f"/runs/{run.pk}/forced/cost/", wrong)
        assert (refused.status_code, set(refused.json()["fields"])) == (400, {field})
    assert ForcedScoringRecord.objects.count() == before


def test_answers_are_listed_with_their_figures_and_have_traces(api: Api, run: RunRecord) -> None:
    scoring_id = api.post(f"/runs/{run.pk}/forced/", {"endpoint": "other"}).json()["id"]
    forced.scored(ForcedScoringRecord.objects.get(pk=scoring_id), dies_on={0})
    page = api.get(f"/forced/{scoring_id}/responses/?page_size=2").json()
    dead, scored = page["results"]
    assert (dead["error"]["code"], dead["figures"]) == ("engine_error", None)
    assert (scored["tokens"], scored["figures"]["n_not_top"], scored["error"]) == ("same", 1, None)
    rest = api.get(page["next"]).json()["results"]
    assert rest
    assert not {each["id"] for each in rest} & {dead["id"], scored["id"]}
    place = f"/forced/{scoring_id}/responses/{scored['repeat']}/{scored['case']}/trace/"
    trace = api.get(place).json()
    packed = api.get(place, Accept="application/octet-stream")
    stored = read_trace(packed.content, 0)
    assert [each["token_id"] for each in trace["positions"]] == stored.token_ids.tolist()
    assert trace["positions"][0]["alternatives"][0]["logprob"] > trace["positions"][0]["logprob"]
    missing = api.get(f"/forced/{scoring_id}/responses/{dead['repeat']}/{dead['case']}/trace/")
    assert missing.status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "endpoint"),
        ({"endpoint": 7}, "endpoint"),
        ({"endpoint": "other", "speed": 1}, "speed"),
        ({"endpoint": "other", "as_run": "1"}, "endpoint"),
        ({"as_run": "1", "profile": "pinned"}, "profile"),
        ({"endpoint": "other", "cases": "sky"}, "cases"),
        ({"endpoint": "other", "cases": []}, "cases"),
        ({"endpoint": "other", "cases": ["moon"]}, "cases"),
        ({"endpoint": "other", "repeats": [0]}, "repeats[0]"),
        ({"endpoint": "other", "repeats": [9]}, "repeats"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(api: Api, run: RunRecord, body: dict[str, Any], field: str) -> None:
    refused = api.post(f"/runs/{run.pk}/forced/", body)
    assert refused.status_code == 400
    assert list(refused.json()["fields"]) == [field]
    assert not ForcedScoringRecord.objects.exists()


def test_both_sides_of_a_comparison_are_asked_for_at_once(api: Api, run: RunRecord) -> None:
    other = build.finished_run(on="other")
    asked = api.post("/compare/forced/", {"baseline": str(run.pk), "candidate": str(other.pk)})
    assert asked.status_code == 201
    body = asked.json()
    assert (body["baseline"]["run"], body["baseline"]["endpoint"]) == (str(run.pk), "other")
    assert (body["candidate"]["run"], body["candidate"]["endpoint"]) == (str(other.pk), "local")
    assert api.post("/compare/forced/", {"baseline": str(run.pk), "candidate": "999"}).status_code == 404
