"""POST /endpoints/ with the engine openai: an external server."""

from typing import Any

import pytest

from evalboard.contract.catalogue import Endpoint
from runs.models import EndpointRecord
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db
HOSTS = frozenset(("*", "localhost", "127.0.0.1", "gpu-3.internal:8000"))


@pytest.fixture(autouse=True)
def hosts(settings: Any) -> None:
    settings.ENDPOINT_HOSTS = HOSTS


def remote(**changes: Any) -> dict[str, Any]:
    known = {"slug": "theirs", "engine": "openai", "base_url": "https://api.example.com/v1"}
    return {**known, "model": {"name": "gpt-paint"}, **changes}


def test_a_server_of_others_needs_an_address_and_a_model(api: Api) -> None:
    made = api.post("/endpoints/", remote())
    assert made.status_code == 201
    known = {"slug": "theirs", "engine": "openai", "model": {"name": "gpt-paint"}, "line": "gpt-paint"}
    known |= {"dtype": "", "quantization": "", "max_model_len": None, "pool": "default", "api": "chat", "auth": ""}
    known |= {"base_url": "https://api.example.com/v1", "headers": {}, "extra_body": {}, "concurrency": 8}
    known |= {
        "calls_per_minute": None,
        "reference": None,
        "bypass": None,
        "rescores": False,
        "daily_check": False,
        "rests_until": None,
        "rest_reason": None,
        "n_failures": None,
        "tensor_parallel_size": None,
        "pipeline_parallel_size": None,
    }
    known |= {"endings": {}, "ignores_fingerprint": False, "price": None}
    assert made.json() == known
    assert api.get("/endpoints/").json()["results"] == [known]


def test_a_completion_is_not_sent_to_an_api_that_makes_chats(api: Api) -> None:
    suite = {"slug": "texts", "scorer": {"kind": "exact"}}
    suite["cases"] = [{"id": "sky", "completion": "The sky is", "target": "blue"}]
    assert api.post("/suites/", suite).status_code == 201
    build.profile("pinned")
    for kind in ("chat", "completions"):
        assert api.post("/endpoints/", remote(slug=kind, api=kind)).status_code == 201
    asked = {"suite": "texts", "profile": "pinned", "repeats": 1}
    refused = api.post("/runs/", {**asked, "endpoint": "chat"})
    assert refused.status_code == 400
    assert refused.json()["fields"]["endpoint"].startswith("Case sky: The case is a completion")
    assert api.post("/runs/", {**asked, "endpoint": "completions"}).status_code == 201


def test_every_field_comes_back_as_it_was_sent(api: Api) -> None:
    build.endpoint("ours")
    assert api.post("/endpoints/", remote(slug="direct", base_url="http://gpu-3.internal:8000/v1")).status_code == 201
    sent = remote(
        api="completions",
        auth="PAINT_API_KEY",
        headers={"x-team": "evals", "x-author": "plain", "x-api-key": {"env": "OTHER_API_KEY"}},
        extra_body={"provider": {"only": ["a"], "allow_fallbacks": False}},
        concurrency=64,
        line="paint",
        pool="remote",
        reference="ours",
        bypass="direct",
        rescores=False,
        daily_check=True,
    )
    answer = api.post("/endpoints/", sent)
    assert answer.status_code == 201, answer.json()
    assert {name: answer.json()[name] for name in sent} == sent


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("https://api.example.com/v1/", "https://api.example.com/v1"),
        ("https://API.Example.com/v1/chat/completions", "https://api.example.com/v1"),
        ("https://api.example.com/v1/completions/", "https://api.example.com/v1"),
        ("https://api.example.com/v1/responses", "https://api.example.com/v1"),
        ("https://api.example.com", "https://api.example.com"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://gpu-3.internal:8000", "http://gpu-3.internal:8000"),
        ("https://llm.example.com/openai/deployments/Big", "https://llm.example.com/openai/deployments/Big"),
    ],
)
def test_an_address_is_stored_as_what_calls_go_below(api: Api, sent: str, stored: str) -> None:
    assert api.post("/endpoints/", remote(base_url=sent)).json()["base_url"] == stored


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"base_url": ""}, "base_url"),
        ({"base_url": "api.example.com/v1"}, "base_url"),
        ({"base_url": "ftp://api.example.com/v1"}, "base_url"),
        ({"base_url": "http://api.example.com/v1"}, "base_url"),
        ({"base_url": "http://gpu-3.internal:9000/v1"}, "base_url"),
        ({"base_url": "https://api.example.com/v1?key=1"}, "base_url"),
        ({"base_url": "https://api.example.com/v1#top"}, "base_url"),
        ({"base_url": "https://api.example.com/../v1"}, "base_url"),
        ({"base_url": "https://api.example.com:99999/v1"}, "base_url"),
        ({"base_url": "https://api.example.com/a b"}, "base_url"),
        ({"base_url": "https://api.exämple.com/"}, "base_url"),
        ({"base_url": "https://" + "a" * 600}, "base_url"),
        ({"model": {}}, "model.name"),
        ({"model": {"name": " gpt"}}, "model.name"),
        ({"model": {"name": "a" * 201}, "line": "a"}, "model.name"),
        ({"model": {"name": "a" * 81}}, "line"),
        ({"api": "embeddings"}, "api"),
        ({"auth": "../etc/passwd"}, "auth"),
        ({"auth": "/etc/passwd"}, "auth"),
        ({"auth": "/run/secrets/../../etc/passwd"}, "auth"),
        ({"auth": "/run/secrets"}, "auth"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 65}, "concurrency"),
        ({"headers": {"x team": "evals"}}, "headers"),
        ({"headers": {"Host": "elsewhere"}}, "headers.Host"),
        ({"headers": {"x-team": "a\nb"}}, "headers.x-team"),
        ({"headers": {"x-team": 1}}, "headers.x-team"),
        ({"headers": {"x-team": {"env": "ORG", "more": 1}}}, "headers.x-team"),
        ({"headers": {"X-Team": "a", "x-team": "b"}}, "headers"),
        ({"headers": {f"x-{number}": "a" for number in range(21)}}, "headers"),
        ({"auth": "A_API_KEY", "headers": {"Authorization": {"env": "OTHER_API_KEY"}}}, "headers.Authorization"),
        ({"extra_body": {"messages": []}}, "extra_body.messages"),
        ({"extra_body": {"model": "other"}}, "extra_body.model"),
        ({"extra_body": {"temperature": 0.5}}, "extra_body.temperature"),
        ({"extra_body": {"seed": 1}}, "extra_body.seed"),
        ({"extra_body": {"stream": True}}, "extra_body.stream"),
        ({"extra_body": {"text": "a" * 8200}}, "extra_body"),
        ({"reference": "nobody"}, "reference"),
        ({"bypass": "ours"}, "bypass"),
        ({"reference": "direct"}, "reference"),
        ({"pool": "p" * 41}, "pool"),
    ],
)
def test_what_is_no_endpoint_is_refused_by_its_field(api: Api, changes: dict[str, Any], field: str) -> None:
    build.endpoint("ours")
    assert api.post("/endpoints/", remote(slug="direct")).status_code == 201
    refused = api.post("/endpoints/", remote(**changes))
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])
    assert not EndpointRecord.objects.filter(slug="theirs").exists()


@pytest.mark.parametrize(
    "field", ["base_url", "api", "headers", "extra_body", "concurrency", "reference", "bypass", "rescores"]
)
def test_an_endpoint_of_ours_has_no_fields_of_others(api: Api, field: str) -> None:
    sent = remote(api="chat", auth="A_API_KEY", headers={"a": "b"}, extra_body={"a": 1}, concurrency=2, rescores=False)
    sent |= {"reference": "ours", "bypass": "direct"}
    ours = {"slug": "local", "model": {"repo": "owner/name", "revision": "a" * 40}, "dtype": "float32", "line": "paint"}
    refused = api.post("/endpoints/", {**ours, field: sent[field]})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"dtype": "float32"}, "dtype"),
        ({"quantization": "awq"}, "quantization"),
        ({"max_model_len": 512}, "max_model_len"),
        ({"model": {"name": "gpt-paint", "path": "/models/a"}}, "model.path"),
        ({"model": {"name": "gpt-paint", "repo": "owner/name"}}, "model.repo"),
    ],
)
def test_a_server_of_others_has_no_fields_of_ours(api: Api, changes: dict[str, Any], field: str) -> None:
    refused = api.post("/endpoints/", remote(**changes))
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])


def test_an_endpoint_is_told_that_fingerprints_name_no_server(api: Api) -> None:
    assert api.post("/endpoints/", remote()).status_code == 201
    for ignores in (True, False):
        said = api.post(f"/endpoints/{remote()['slug']}/fingerprint/", {"ignores_fingerprint": ignores})
        assert (said.status_code, said.json()["ignores_fingerprint"]) == (200, ignores)
    build.endpoint("ours")
    refused = api.post("/endpoints/ours/fingerprint/", {"ignores_fingerprint": True})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["ignores_fingerprint"])
    assert api.post("/endpoints/none/fingerprint/", {"ignores_fingerprint": True}).status_code == 404


def test_the_price_of_its_tokens_is_set_with_it_or_later_in_exact_decimals(api: Api) -> None:
    price = {"currency": "EUR", "input": "2.50", "output": "10", "cached": "1.25", "reasoning": None}
    assert api.post("/endpoints/", remote(price=price)).json()["price"] == price
    cheaper = api.post("/endpoints/theirs/price/", {"price": {"currency": "EUR", "input": 1, "output": "0.10"}})
    nulls = {"cached": None, "reasoning": None}
    assert cheaper.json()["price"] == {"currency": "EUR", "input": "1", "output": "0.10"} | nulls
    assert api.get("/endpoints/theirs/").json()["price"]["output"] == "0.10"
    assert api.post("/endpoints/theirs/price/", {"price": None}).json()["price"] is None
    refused = api.post("/endpoints/theirs/price/", {"price": {"input": "2.50"}})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["price"])
    build.endpoint("ours")
    refused = api.post("/endpoints/ours/price/", {"price": price})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["price"])
    assert api.post("/endpoints/none/price/", {"price": price}).status_code == 404


def test_an_endpoint_of_ours_is_answered_as_ever_with_nulls_beside(api: Api) -> None:
    build.endpoint("ours")
    [row] = api.get("/endpoints/").json()["results"]
    assert row["model"] == {"path": row["model"]["path"], "adapter": None}
    nulls = {name for name, value in row.items() if value is None}
    assert nulls == Endpoint.model_fields.keys() - {
        *("slug", "engine", "model", "dtype", "quantization", "line", "max_model_len", "pool", "endings"),
        *("tensor_parallel_size", "pipeline_parallel_size"),
    }
