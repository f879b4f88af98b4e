"""/endpoints/ and /profiles/: data that admins add to."""

from typing import Any

import pytest
from django.conf import settings

from evalboard.core.profile import DEFAULT_PROFILES
from runs.models import EndpointRecord
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db


def endpoint(**changes: Any) -> dict[str, Any]:
    path = str(settings.MODEL_ROOTS[0] / "paint-1b")
    return {"slug": "local", "model": {"path": path}, "dtype": "float32", "line": "paint", **changes}


def test_an_endpoint_is_made_and_listed(api: Api) -> None:
    made = api.post("/endpoints/", endpoint(max_model_len=512))
    assert made.status_code == 201
    assert made.json()["model"] == {**endpoint()["model"], "adapter": None}
    assert made.json()["max_model_len"] == 512
    assert api.get("/endpoints/").json()["results"] == [made.json()]


def test_a_model_of_a_hub_has_a_revision(api: Api) -> None:
    model = {"repo": "owner/name", "revision": "a" * 40}
    assert api.post("/endpoints/", endpoint(model=model)).json()["model"] == {**model, "adapter": None}
    answer = api.post("/endpoints/", endpoint(slug="other", model={"repo": "owner/name", "revision": "main"}))
    assert "model.revision" in answer.json()["fields"]


def test_the_token_of_a_hub_is_named_and_only_a_repository_has_one(api: Api) -> None:
    model = {"repo": "owner/name", "revision": "a" * 40}
    assert api.post("/endpoints/", endpoint(model=model, auth="HUB_API_KEY")).json()["auth"] == "HUB_API_KEY"
    for changes in ({"auth": "HUB_API_KEY"}, {"model": model, "auth": "HF_TOKEN"}):
        answer = api.post("/endpoints/", endpoint(slug="other", **changes))
        assert (answer.status_code, answer.json()["fields"].keys()) == (400, {"auth"})


def test_a_model_in_a_bucket_is_under_a_root(api: Api, settings: Any) -> None:
    settings.MODEL_BUCKETS = ["s3://models/lab"]
    model = {"path": "s3://models/lab/paint-1b"}
    assert api.post("/endpoints/", endpoint(model=model)).json()["model"]["path"] == model["path"]
    for path in ("s3://models/lab", "s3://models/labour/x", "s3://models/lab/../x", "s3://models/lab/x/", "s3://x"):
        answer = api.post("/endpoints/", endpoint(slug="other", model={"path": path}))
        assert (answer.status_code, answer.json()["fields"].keys()) == (400, {"model.path"}), path


def test_an_adapter_is_named_with_its_base_by_an_endpoint_or_a_run(api: Api) -> None:
    root = settings.MODEL_ROOTS[0]
    model = {"path": str(root / "paint-1b"), "adapter": str(root / "tone-v1")}
    made = api.post("/endpoints/", endpoint(model=model))
    assert made.json()["model"] == model
    known = EndpointRecord.objects.get()
    assert known.model_name == "adapter tone-v1 on paint-1b"
    base = {"model_path": model["path"], "model_repo": "", "model_revision": ""}
    assert known.checkpoint({"adapter": "/m/tone-v2"}) == {**base, "model_adapter": "/m/tone-v2"}
    assert known.checkpoint({"path": "/m/paint-2b"}) == {**base, "model_path": "/m/paint-2b", "model_adapter": ""}
    commit = "a" * 40
    of_hub = {**model, "adapter": f"lab/tone@{commit}"}
    named = api.post("/endpoints/", endpoint(slug="of-hub", model=of_hub, auth="HUB_API_KEY")).json()
    assert (named["model"]["adapter"], named["auth"]) == (of_hub["adapter"], "HUB_API_KEY")
    assert EndpointRecord.objects.get(slug="of-hub").model_name == "adapter tone on paint-1b"
    for adapter in ("lab/tone@main", "s3://other/tone"):
        refused = api.post("/endpoints/", endpoint(slug="other", model={**model, "adapter": adapter}))
        assert refused.json()["fields"].keys() == {"model.adapter"}
    elsewhere = api.post("/endpoints/", endpoint(slug="other", model={**model, "adapter": "/etc"}))
    assert elsewhere.json()["fields"].keys() == {"model.adapter"}


def test_sizes_that_no_worker_of_the_pool_has_the_gpus_for_are_refused_with_what_it_has(api: Api) -> None:
    assert api.post("/endpoints/", endpoint(slug="early", tensor_parallel_size=2)).status_code == 201
    build.worker(hardware={"kind": "cuda", "gpus": [{"name": "H100", "capability": 9.0}]})
    refused = api.post("/endpoints/", endpoint(tensor_parallel_size=2)).json()["fields"]
    assert refused == {"tensor_parallel_size": "Pool default has workers with 1 GPU; tensor_parallel_size 2 needs 2."}
    assert api.post("/endpoints/", endpoint(pipeline_parallel_size=65)).json()["fields"].keys() == {
        "pipeline_parallel_size"
    }
    build.suite()
    build.profile()
    run = {"suite": "colours", "endpoint": "early", "profile": "pinned"}
    answer = api.post("/runs/", run).json()
    assert answer["detail"] == refused["tensor_parallel_size"]


@pytest.mark.parametrize("path", ["/etc", "relative", "{root}/../../etc"])
def test_a_model_elsewhere_on_the_machine_is_refused(api: Api, path: str) -> None:
    path = path.format(root=settings.MODEL_ROOTS[0])
    answer = api.post("/endpoints/", endpoint(model={"path": path}))
    assert (answer.status_code, answer.json()["fields"].keys()) == (400, {"model.path"})


def test_a_slug_that_is_taken_is_a_conflict(api: Api) -> None:
    build.endpoint()
    answer = api.post("/endpoints/", endpoint())
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_a_profile_that_changed_is_its_next_version(api: Api) -> None:
    body = {"slug": "mine", "title": "Mine", "settings": DEFAULT_PROFILES["pinned"]["settings"]}
    first = api.post("/profiles/", body)
    assert (first.status_code, first.json()["version"]) == (201, 1)
    assert api.post("/profiles/", body).status_code == 200
    changed = {**body, "settings": {**body["settings"], "sampling": {**body["settings"]["sampling"], "seed": 7}}}
    assert api.post("/profiles/", changed).json()["version"] == 2
    [listed] = api.get("/profiles/").json()["results"]
    assert (listed["version"], listed["settings"]["sampling"]["seed"]) == (2, 7)


def test_a_setting_that_does_not_exist_is_named(api: Api) -> None:
    settings_of_profile = {**DEFAULT_PROFILES["pinned"]["settings"], "speed": "fast"}
    answer = api.post("/profiles/", {"slug": "mine", "settings": settings_of_profile})
    assert (answer.status_code, answer.json()["fields"].keys()) == (400, {"speed"})
