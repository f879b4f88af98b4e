"""`/probes/`, `/probes/{id}/` and its calls."""

from dataclasses import replace
from typing import Any

import pytest

from runs.models import EndpointRecord, ProbeRecord
from tests import build, probes
from tests.api.conftest import Api
from tests.capability import EVERYTHING, answer_calls


@pytest.fixture(autouse=True)
def endpoint(db: None) -> str:
    build.profile("pinned")
    build.profile("fast")
    return build.endpoint("local")


def test_a_probe_is_asked_for_and_followed_to_its_finding(api: Api) -> None:
    small = {"prompts": ["Name a colour.", "Name a town."], "calls_per_group": 4}
    asked = api.post("/probes/", {"endpoint": "local", "kind": "seed", "parameters": small})
    body = asked.json()
    assert asked.status_code == 201
    assert asked["Location"].endswith(f"/api/v1/probes/{body['id']}/")
    assert (body["endpoint"], body["kind"], body["profile"], body["profile_version"]) == ("local", "seed", "pinned", 1)
    assert (body["status"], body["progress"], body["finding"]) == ("queued", {"n_done": 0, "n_total": 18}, None)
    assert (body["parameters"]["calls_per_group"], body["parameters"]["max_tokens"]) == (4, 64)
    assert (body["created_by"], body["error"], body["finished_at"]) == ("root", None, None)
    assert body["url"].endswith(f"/probes/{body['id']}/")
    probes.served(probes.honoured)
    ended = api.get(asked["Location"]).json()
    assert (ended["status"], ended["finding"]["state"]) == ("finished", "honoured")
    assert ended["progress"] == {"n_done": 18, "n_total": 18}
    assert ended["finding"]["numbers"]["n_loyal"] == 8
    assert ended["workers"] == ["prober"]
    assert ended["finished_at"].endswith("Z")


def test_the_profile_may_be_named(api: Api) -> None:
    asked = {"endpoint": "local", "kind": "batch", "profile": "pinned"}
    assert api.post("/probes/", asked).json()["profile"] == "pinned"
    assert api.post("/probes/", {"endpoint": "local", "kind": "batch"}).json()["profile"] == "fast"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"endpoint": None}, "endpoint"),
        ({"kind": None}, "kind"),
        ({"kind": "speed"}, "kind"),
        ({"kind": 3}, "kind"),
        ({"profile": None}, "profile"),
        ({"parameters": []}, "parameters"),
        ({"parameters": {"copies": 3}}, "parameters.copies"),
        ({"parameters": {"calls_per_group": 1}}, "parameters.calls_per_group"),
        ({"speed": 1}, "speed"),
        ({"endpoint": "log"}, "endpoint"),
    ],
)
def test_what_is_wrong_is_named(api: Api, changes: dict[str, Any], field: str) -> None:
    EndpointRecord.objects.create(slug="log", engine="imported", model_repo="a/b", dtype="float32", line="a")
    refused = api.post("/probes/", {"endpoint": "local", "kind": "seed", **changes})
    assert refused.status_code == 400
    assert list(refused.json()["fields"]) == [field]
    assert not ProbeRecord.objects.exists()


def test_what_is_not_there_is_404(api: Api) -> None:
    for path in ("/probes/999/", "/probes/999/calls/"):
        assert api.get(path).status_code == 404
    for changes in ({"endpoint": "desert"}, {"profile": "desert"}):
        assert api.post("/probes/", {"endpoint": "local", "kind": "seed", **changes}).status_code == 404


def test_probes_come_newest_first_in_pages_and_by_their_filters(api: Api) -> None:
    build.endpoint("other")
    asked = [probes.ask("routing").pk, probes.ask("seed").pk, probes.ask("routing", on="other").pk]
    first = api.get("/probes/?page_size=2").json()
    assert [each["id"] for each in first["results"]] == [str(asked[2]), str(asked[1])]
    second = api.get(first["next"]).json()
    assert [each["id"] for each in second["results"]] == [str(asked[0])]
    assert [each["id"] for each in api.get(second["previous"]).json()["results"]] == [str(asked[2]), str(asked[1])]
    of_one = api.get("/probes/?endpoint=local&kind=routing").json()
    assert [each["id"] for each in of_one["results"]] == [str(asked[0])]
    assert api.get("/probes/?endpoint=desert").json()["results"] == []
    refused = api.get("/probes/?kind=speed")
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["kind"])


def test_probes_are_sorted_by_what_a_request_names_and_pages_keep_the_order(api: Api) -> None:
    asked = [str(probes.ask(kind).pk) for kind in ("seed", "routing", "seed")]
    first = api.get("/probes/?ordering=-kind&page_size=2").json()
    assert [each["id"] for each in first["results"]] == [asked[2], asked[0]]
    second = api.get(first["next"]).json()
    assert [each["id"] for each in second["results"]] == [asked[1]]
    assert [each["id"] for each in api.get(second["previous"]).json()["results"]] == [asked[2], asked[0]]
    assert api.get("/probes/?ordering=answers").status_code == 400


def test_a_list_says_what_was_found_without_the_numbers(api: Api) -> None:
    probe = probes.ask("batch", parameters={"prompts": 1, "copies": 10, "load": 2})
    probes.served(probes.alike)
    [row] = api.get("/probes/").json()["results"]
    assert (row["id"], row["status"], row["finding"].keys()) == (str(probe.pk), "finished", {"state", "sentence"})
    assert row["finding"]["state"] == "invariant"


def test_the_calls_are_the_evidence_in_pages(api: Api) -> None:
    probe = probes.ask("seed", parameters={"prompts": 1, "calls_per_group": 2})
    probes.served(probes.honoured)
    first = api.get(f"/probes/{probe.pk}/calls/?page_size=3").json()
    rest = api.get(first["next"]).json()
    calls = first["results"] + rest["results"]
    assert [len(first["results"]), len(rest["results"])] == [3, 2]
    assert sorted(call["group"] for call in calls) == ["different", "different", "greedy", "same", "same"]
    assert len({call["seed"] for call in calls}) == 3 + 1  # and the greedy call has none
    assert {call["worker"] for call in calls} == {"prober"}
    assert all(call["text"] == f"seed {call['seed']}" and call["error"] is None for call in calls)


def test_a_probe_without_any_answer_has_failed_and_says_why(api: Api) -> None:
    probe = probes.ask("seed")
    probes.served(probes.failed("engine_error: no memory"))
    body = api.get(f"/probes/{probe.pk}/").json()
    assert (body["status"], body["finding"], body["error"]) == ("failed", None, "engine_error: no memory")
    call = api.get(f"/probes/{probe.pk}/calls/?page_size=1").json()["results"][0]
    assert (call["text"], call["finish_reason"], call["error"]) == ("", None, "engine_error: no memory")


def test_polling_is_told_that_nothing_has_changed(api: Api) -> None:
    probe = probes.ask("seed", parameters={"prompts": 1, "calls_per_group": 2})
    path = f"/probes/{probe.pk}/"
    tag = api.get(path)["ETag"]
    assert api.get(path, If_None_Match=tag).status_code == 304
    probes.served(probes.honoured)
    assert api.get(path, If_None_Match=tag).status_code == 200


def test_two_batch_probes_are_held_against_each_other_the_older_first(api: Api) -> None:
    ids = []
    for answer in (probes.alike, probes.moved_by_batching(2)):
        ids.append(probes.ask("batch", parameters={"prompts": 1, "copies": 60, "load": 0}).pk)
        probes.served(answer)
    body = api.get(f"/probes/{ids[1]}/against/{ids[0]}/").json()
    assert (body["first"], body["second"], body["state"]) == (str(ids[0]), str(ids[1]), "other_noise")
    assert body["sentence"].startswith("The second probe is noisier: two copies agree 100.0 % of the time in the first")
    assert body["numbers"]["n_copies"] == [60, 60]


def test_what_cannot_be_held_against_each_other_is_409(api: Api) -> None:
    batch = probes.ask("batch", parameters={"prompts": 1, "copies": 4}).pk
    probes.served(probes.alike)
    seed = probes.ask("seed", parameters={"prompts": 1}).pk
    probes.served(probes.honoured)
    other_prompts = probes.ask("batch", parameters={"prompts": 2, "copies": 4}).pk
    probes.served(probes.alike)
    queued = probes.ask("batch", parameters={"prompts": 1, "copies": 4}).pk
    for other in (batch, seed, other_prompts, queued):
        assert api.get(f"/probes/{batch}/against/{other}/").status_code == 409
    assert api.get(f"/probes/{batch}/against/999/").status_code == 404


@pytest.mark.nightly
def test_a_capability_check_of_a_gateway_carries_its_rows_its_hop_and_its_control(api: Api) -> None:
    probes.remote("gateway", bypass=EndpointRecord.objects.get(slug=probes.remote("direct")))
    body = api.post("/probes/", {"endpoint": "gateway", "kind": "capability"}).json()
    assert (body["hop"]["gateway"], body["hop"]["direct"], body["hop"]["sentence"]) == ("gateway", "direct", None)
    for honours in (EVERYTHING - {"seed"}, EVERYTHING):
        scripted = iter(answer_calls(honours=honours))
        probes.served_by_others(lambda call, scripted=scripted: replace(next(scripted), round=call.round))
    path = f"/probes/{body['id']}/"
    ended = api.get(path).json()
    rows = {row["parameter"]: row for row in ended["finding"]["numbers"]["rows"]}
    assert rows["seed"].keys() == {"parameter", "asked", "state", "detail"}
    assert (rows["seed"]["state"], rows["logprobs"]["detail"]) == ("ignored", {"k": 20, "given": 20})
    assert ended["hop"]["sentence"] == "gateway drops seed, which direct honours."
    assert ended["control"].startswith("direct, reached without the gateway: probe ")
    [call] = api.get(f"{path}calls/?page_size=1").json()["results"]
    assert (call["backend"], call["marks"]) == (None, [])


def test_a_capability_check_of_an_engine_of_ours_is_refused_in_words(api: Api) -> None:
    refused = api.post("/probes/", {"endpoint": "local", "kind": "capability"})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["kind"])
