"""An admin pastes a key where its name belongs, or an address that leads into the network."""

import hashlib
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from evalboard import safety
from evalboard.calling.calls import EndpointRefused
from evalboard.core.secret_names import read_key_patterns
from runs.models import EndpointRecord
from tests.api.conftest import Api, api
from tests.nightly import few
from tests.scripted import ScriptedServer
from tests.worker.openai_cases import answered, decode
from worker.engines.named_secrets import read_headers

__all__ = ["api"]
pytestmark = pytest.mark.django_db
SECRET_HEADERS = (
    "Ocp-Apim-Subscription-Key",
    "X-Functions-Key",
    "X-Auth-Key",
    "XApiKey",
    "X-AccessToken",
    "X-Amz-Security-Token",
    "X-Api-Key-2",
    "X-Passwd",
    "X-Jwt",
)
OURS = (
    "EVALBOARD_SECRET_KEY",
    "EVALBOARD_TOKEN",
    "EVALBOARD_OTHER_API_KEY",
    "DATABASE_URL",
    "REDIS_URL",
    "POSTGRES_PASSWORD",
    "POSTGRES_API_KEY",
    "PGPASSWORD",
    "DJANGO_SECRET",
    "SECRET_KEY",
)
# Of the machine, and of no endpoint.
OTHERS = ("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "GITHUB_TOKEN", "MYSQL_PASSWORD", "PATH", "API_KEY_FILE", "X_API_KEYS")
THIS_MACHINE = ("127.0.0.1", "localhost", "::1", "0.0.0.0", "127.1.2.3", "::ffff:127.0.0.1")  # noqa: S104  to be refused
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
        {"headers": {"x-plain": hashlib.sha256(SECRET.encode()).hexdigest()[:32]}},
        *({"headers": {name: "hunter2"}} for name in SECRET_HEADERS),
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


@pytest.mark.parametrize("name", OURS + OTHERS)
def test_no_server_of_others_hears_a_secret_of_the_machine(
    api: Api, name: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where an endpoint is made nor by a row that was there before, whatever the operator allows of ours."""
    monkeypatch.setenv(name, "never-to-be-seen")
    if name in OURS:
        settings.ENDPOINT_KEYS = ("*_*",)
    words = (
        "Evalboard's own" if name in OURS else rf"Endpoints may not name the variable {name}\. EVALBOARD_ENDPOINT_KEYS"
    )
    for sent, field in (({"auth": name}, "auth"), ({"headers": {"x-a": {"env": name}}}, "headers.x-a")):
        refused = api.post("/endpoints/", remote(**sent))
        assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])
        assert re.search(words, refused.json()["fields"][field])
    with ScriptedServer() as server:
        for row in ({"auth": name}, {"headers": {"x-a": {"env": name}}}):
            with pytest.raises(EndpointRefused, match=words):
                decode(server, **row)
        assert (server.requests, server.looks) == ([], [])


def test_a_variable_that_the_operator_allows_is_sent(api: Api, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "theirs")
    assert api.post("/endpoints/", remote(auth="HF_TOKEN")).status_code == 400
    settings.ENDPOINT_KEYS = ("*_API_KEY", "HF_*")
    assert api.post("/endpoints/", remote(auth="HF_TOKEN")).status_code == 201
    with ScriptedServer() as server:
        answered(decode(server, auth="HF_TOKEN")[0])
        assert server.requests[0].headers["authorization"] == "Bearer theirs"


@pytest.mark.parametrize(
    "name",
    [
        "kubernetes.io/serviceaccount/token",
        "postgres_password",
        "worker_password",
        "web_database_url",
        "redis_auth",
        "redis_url",
        "database_url",
        "secret_key",
        "verdict_key",
        "email_password",
        "oidc_client_secret",
    ],
)
def test_no_file_of_ours_or_of_the_cluster_is_a_key(api: Api, name: str, settings: Any, tmp_path: Path) -> None:
    settings.SECRETS_DIR = tmp_path
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("never-to-be-seen")
    (tmp_path / "plain").symlink_to(tmp_path / name)
    refused = api.post("/endpoints/", remote(auth=str(tmp_path / name)))
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["auth"])
    for written in (name, "plain"):  # a link that the operator made leads there too
        with pytest.raises(EndpointRefused, match="is sent to no endpoint"):
            read_headers(str(tmp_path / written), {})


@pytest.mark.parametrize("setting", ["*", "**", "*,OPENAI_API_KEY", "openai_api_key", "A B", "OPENAI_API_KEY;HF_TOKEN"])
def test_a_setting_that_would_allow_everything_stops_the_start(setting: str) -> None:
    with pytest.raises(ValueError, match="EVALBOARD_ENDPOINT_KEYS"):
        read_key_patterns(setting.split(","))


@pytest.mark.parametrize("host", few([f"[{name}]" if ":" in name else name for name in THIS_MACHINE], 2))
@pytest.mark.parametrize("service", ["database", "redis", "web"])
def test_our_own_services_are_called_by_no_endpoint(api: Api, host: str, service: str, settings: Any) -> None:
    """An installation of one machine may call itself, on every other port; so may one that names this machine."""
    with ScriptedServer() as server:
        port = str(server.port)
        own = safety.own_services(
            database={"HOST": "localhost", "PORT": port if service == "database" else ""},
            redis_url=f"redis://:secret@127.0.0.1:{port}/0" if service == "redis" else "",
            web_bind=f"0.0.0.0:{port}" if service == "web" else "",
        )
        settings.ENDPOINT_HOSTS = safety.endpoint_hosts(THIS_MACHINE, hosts=safety.LOCAL_HOSTS, own=own)
        refused = api.post("/endpoints/", remote(base_url=f"http://{host}:{port}/v1"))
        assert "one of Evalboard's own services" in refused.json()["fields"]["base_url"]
        server.base_url = f"http://{host}:{port}/v1"
        with pytest.raises(EndpointRefused, match="one of Evalboard's own services"):
            decode(server)
        assert (server.requests, server.looks) == ([], [])
    with ScriptedServer() as another:
        answered(decode(another)[0])


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
