"""An admin pastes a key where its name belongs, or an address that leads into the network."""

import json
import logging
from typing import Any

import pytest

from runs.models import EndpointRecord
from tests.api.conftest import Api, api

__all__ = ["api"]
pytestmark = pytest.mark.django_db
SECRET = "sk-proj-Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZg"


@pytest.fixture(autouse=True)
def hosts(settings: Any) -> None:
    settings.ENDPOINT_HOSTS = frozenset(("*", "localhost", "127.0.0.1"))


def remote(**changes: Any) -> dict[str, Any]:
    known = {"slug": "theirs", "engine": "openai", "base_url": "https://api.example.com/v1"}
    return {**known, "model": {"name": "gpt-paint"}, **changes}


@pytest.mark.parametrize(
    "sent",
    [
        {"auth": SECRET},
        {"auth": f"Bearer {SECRET}"},
        {"auth": f"OPENAI_API_KEY={SECRET}"},
        {"auth": f"/{SECRET}"},
        {"auth": SECRET.replace("-", "").upper()[2:] + SECRET},
        {"headers": {"Authorization": f"Bearer {SECRET}"}},
        {"headers": {"x-api-key": SECRET}},
        {"headers": {"cookie": SECRET}},
        {"headers": {"x-plain": SECRET}},
        {"headers": {"x-env": {"env": SECRET}}},
        {"headers": {f"x {SECRET}": "a"}},
        {"headers": {SECRET: "a"}},
        {"extra_body": {"api_key": SECRET}},
        {"extra_body": {"provider": [{"token": SECRET}]}},
        {"extra_body": {"note": SECRET}},
        {"base_url": f"https://{SECRET}@api.example.com/v1"},
        {"base_url": f"https://api.example.com/v1?key={SECRET}"},
        {"model": {"name": SECRET}},
    ],
    ids=lambda sent: next(iter(sent)),
)
def test_a_key_is_neither_stored_nor_repeated(api: Api, sent: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        refused = api.post("/endpoints/", remote(**sent))
    assert refused.status_code == 400
    assert SECRET.casefold() not in json.dumps(refused.json()).casefold()
    assert SECRET not in caplog.text
    assert not EndpointRecord.objects.exists()


@pytest.mark.parametrize(
    "name",
    [
        "EVALBOARD_SECRET_KEY",
        "EVALBOARD_TOKEN",
        "DATABASE_URL",
        "REDIS_URL",
        "PGPASSWORD",
        "DJANGO_SECRET",
        "SECRET_KEY",
    ],
)
def test_no_server_of_others_hears_a_secret_of_ours(api: Api, name: str) -> None:
    for sent, field in (({"auth": name}, "auth"), ({"headers": {"x-a": {"env": name}}}, "headers.x-a")):
        refused = api.post("/endpoints/", remote(**sent))
        assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])


@pytest.mark.parametrize(
    "url",
    [
        "https://169.254.169.254/latest/meta-data/",
        "http://169.254.169.254/latest/meta-data/",
        "https://[::ffff:169.254.169.254]/",
        "https://[fd00:ec2::254]/",
        "https://10.0.0.1/v1",
        "https://192.168.1.1/v1",
        "https://[::ffff:10.0.0.1]/v1",
        "https://[fe80::1]/v1",
        "https://0.0.0.0/v1",
        "http://api.example.com/v1",
        "https://api.example.com@10.0.0.1/v1",
        "https://api.example.com\\@10.0.0.1/v1",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/",
        "https:///v1",
        "//127.0.0.1/v1",
    ],
)
def test_no_address_leads_into_the_network(api: Api, url: str) -> None:
    refused = api.post("/endpoints/", remote(base_url=url))
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["base_url"])


def test_where_nothing_is_allowed_no_host_is(api: Api, settings: Any) -> None:
    settings.ENDPOINT_HOSTS = frozenset()
    refused = api.post("/endpoints/", remote())
    assert "EVALBOARD_ENDPOINT_HOSTS" in refused.json()["fields"]["base_url"]


@pytest.mark.parametrize("role", ["viewer", "engineer", "release manager"])
def test_only_admins_add_them(role: str) -> None:
    from tests import build
    from tests.api.conftest import SCOPES

    client = Api(build.token(build.user("eve", role), *SCOPES))
    assert client.post("/endpoints/", remote()).status_code == 403
