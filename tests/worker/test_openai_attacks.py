"""Who types in an endpoint, and who answers for it, may not reach inner addresses, nor see or leave behind a secret."""

import json
import logging
import socket
import traceback
from pathlib import Path
from typing import Any

import pytest

from evalboard.calling.calls import EndpointRefused, EndpointRests, EngineFailure
from evalboard.calling.mask import Mask
from tests.scripted import Reply, ScriptedServer, ok, redirect, status
from tests.worker.openai_cases import NoChance, an_endpoint, answered, decode, failed, opened, questions
from tests.worker.test_post import PUBLIC, certificate, with_tls
from worker.engines.named_secrets import read_headers
from worker.engines.openai import OpenAIEngine

__all__ = ["certificate"]
KEY = "sk-live-0123456789/abcdefghijklmnop"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("THEIR_API_KEY", KEY)
    return KEY


def name_server(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> None:
    """What `models.example` is when asked once, twice and so on."""
    known, left = socket.getaddrinfo, list(answers)

    def getaddrinfo(host: str, port: int, *rest: Any, **options: Any) -> Any:
        if host != "models.example":
            return known(host, port, *rest, **options)
        now = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in now]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.mark.parametrize("address", ["10.1.2.3", "127.0.0.1", "169.254.169.254", "100.64.0.1"])
def test_a_name_that_leads_inside_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    name_server(monkeypatch, [PUBLIC, address])
    with ScriptedServer() as server:
        server.base_url = f"http://models.example:{server.port}/v1"
        with pytest.raises(EndpointRefused, match="EVALBOARD_ENDPOINT_HOSTS"):
            decode(server)
    assert (server.requests, server.looks) == ([], [])


def test_a_name_that_moves_inside_later_is_refused_at_the_next_connection(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.ENDPOINT_HOSTS = frozenset({"*"})
    with ScriptedServer() as server:
        name_server(monkeypatch, [PUBLIC], ["10.0.0.7"])
        server.base_url = f"https://models.example:{server.port}/v1"
        with pytest.raises(EndpointRefused, match=r"models\.example is 10\.0\.0\.7"):
            decode(server)
    assert (server.requests, server.looks) == ([], [])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the socket that the guard stopped
def test_the_connection_goes_where_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look at the name and the connection are one: the guard of tests/conftest.py says where it was to go."""
    name_server(monkeypatch, [PUBLIC], [PUBLIC], ["127.0.0.1"])
    with ScriptedServer() as server:
        server.base_url = f"https://models.example:{server.port}/v1"
        with pytest.raises(RuntimeError, match=PUBLIC):
            decode(server)
    assert (server.requests, server.looks) == ([], [])


def test_a_host_that_nobody_named_is_not_called(settings: Any) -> None:
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1:1"})
    with ScriptedServer() as server:
        with pytest.raises(EndpointRefused, match=r"127\.0\.0\.1 is not among the hosts"):
            decode(server)
        settings.ENDPOINT_HOSTS = frozenset({f"127.0.0.1:{server.port}"})
        answered(decode(server)[0])


def test_a_key_does_not_go_in_the_clear_to_a_host_that_nobody_named(
    key: str, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Also where the list was another one when the endpoint was added."""
    settings.ENDPOINT_HOSTS = frozenset({"*"})
    with ScriptedServer() as server:
        name_server(monkeypatch, [PUBLIC])
        server.base_url = f"http://models.example:{server.port}/v1"
        with pytest.raises(EndpointRefused, match="must begin with https://") as refused:
            decode(server, auth="THEIR_API_KEY")
        assert KEY not in str(refused.value)
        settings.ENDPOINT_HOSTS = frozenset({"*", "models.example"})
        name_server(monkeypatch, ["127.0.0.1"])
        answered(decode(server, auth="THEIR_API_KEY")[0])


@pytest.mark.parametrize(
    "base_url", ["ftp://127.0.0.1/v1", "file:///etc/passwd", "http:///v1", "127.0.0.1", "http://a:b"]
)
def test_what_is_no_address_of_a_server_is_refused(base_url: str) -> None:
    with ScriptedServer() as server:
        server.base_url = base_url
        with pytest.raises(EndpointRefused, match="address"):
            decode(server)


def test_a_redirect_carries_nothing_elsewhere(key: str) -> None:
    with ScriptedServer() as inner, ScriptedServer() as outer:
        outer.script = redirect(f"{inner.base_url}/chat/completions")
        with pytest.raises(EndpointRefused, match="redirects are not followed"):
            decode(outer, auth="THEIR_API_KEY")
    assert (inner.requests, inner.looks, len(outer.requests)) == ([], [], 1)


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    with ScriptedServer() as proxy, ScriptedServer() as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.origin)
        monkeypatch.setenv("http_proxy", proxy.origin)
        answered(decode(server, auth="THEIR_API_KEY")[0])
    assert (proxy.requests, proxy.looks) == ([], [])


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ScriptedServer()
    with_tls(Wrapped(server), certificate)
    with server:
        server.base_url = f"https://localhost:{server.port}/v1"
        with pytest.raises(EndpointRefused, match="The certificate of localhost is not trusted"):
            decode(server)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        answered(decode(server, questions(3))[0])
        assert len(server.requests) == 3
        server.base_url = f"https://127.0.0.1:{server.port}/v1"  # the host is compared, not only the chain
        with pytest.raises(EndpointRefused, match="not trusted"):
            decode(server)
        assert len(server.requests) == 3


class Wrapped:
    """What `with_tls` wants of a receiver, of a scripted server."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server._server


def test_the_key_goes_to_the_server_in_its_header(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_TEAM_API_KEY", "team-7")
    with ScriptedServer() as server:
        decode(server, auth="THEIR_API_KEY", headers={"X-Team": {"env": "THEIR_TEAM_API_KEY"}, "X-Title": "Evalboard"})
    headers = server.requests[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert (headers["x-team"], headers["x-title"]) == ("team-7", "Evalboard")


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


ECHOES = {
    "a refusal of the key": status(401, words=f"Incorrect API key provided: {KEY}."),
    "a refusal, escaped": Reply(b'{"error": {"message": "Key ' + escaped(KEY).encode() + b' is wrong"}}', status=401),
    "a refusal, slashed": Reply(json.dumps({"message": KEY}).replace("/", "\\/").encode(), status=403),
    "a failure": status(503, words=f"upstream said no to Bearer {KEY}"),
    "a bad request": status(400, words=f"Unknown header Authorization: Bearer {KEY}"),
    "a page": Reply(f"<html>{KEY}</html>".encode(), headers={"Content-Type": f"text/{KEY}"}),
    "half an answer": Reply(f'{{"id": "{KEY}'.encode()),
    "an error with 200": Reply({"error": {"message": KEY, "code": KEY}}),
    "an answer": ok(
        id=KEY, system_fingerprint=KEY, model=KEY, headers={"x-request-id": KEY, "x-evalboard-backend": KEY}
    ),
    "an error within an answer": ok(choices=[{"error": {"message": KEY}}]),
    "a content that cannot be read": ok(choices=[{"message": {"content": [{"type": KEY}]}}]),
    "a head that is none": Reply({}, headers={f"{KEY} {KEY}": "x"}),
    "a place in a long page": Reply(b"<p>" + b"x" * (980 - 20) + KEY.encode()),
}


@pytest.mark.parametrize("name", ECHOES)
def test_a_secret_that_a_server_echoes_is_left_nowhere(name: str, key: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    with ScriptedServer(ECHOES[name]) as server, opened(server, auth="THEIR_API_KEY") as engine:
        try:
            for outcome in engine.decode(questions(1)):
                seen.append(repr(outcome))
                if name == "an answer":
                    seen.append(answered(outcome).call.model_dump_json())
                else:
                    assert "***" in failed(outcome).detail or name in ("half an answer", "a place in a long page")
        except EngineFailure as failure:
            seen += ["".join(traceback.format_exception(failure)), failure.detail]
        seen += [repr(engine), repr(vars(engine))]
    seen += [record.getMessage() for record in caplog.records if not record.name.startswith("tests")]
    assert seen
    # Not even its beginning: what is cut is cut after it was masked.
    assert not [words for words in seen if KEY[:12] in words]


def test_a_key_of_few_letters_does_not_black_out_right_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_API_KEY", "EMPTY")
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": "EMPTY"}}
    with ScriptedServer(ok(choices=[choice])) as server:
        (outcome,) = decode(server, auth="THEIR_API_KEY")
    assert answered(outcome).response.text == "EMPTY"
    assert Mask(["EMPTY"]).text("The key EMPTY is wrong.") == "The key *** is wrong."


@pytest.mark.parametrize(
    ("auth", "words"),
    [
        ("THEIR_API_KEY", "The environment variable THEIR_API_KEY is not set on the worker "),
        ("EVALBOARD_SECRET_KEY", "Evalboard's own"),
        ("DATABASE_URL", "Evalboard's own"),
        ("REDIS_URL_FILE", "Evalboard's own"),
        ("PGPASSWORD", "Evalboard's own"),
        ("sk-a-key-typed-in-by-mistake", "never the key itself"),
        ("/etc/passwd", "is not under"),
        ("../secrets/key", "Only the name of the variable"),
    ],
)
def test_a_key_that_is_missing_or_not_to_be_sent_is_refused_by_its_name(
    auth: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EVALBOARD_SECRET_KEY", "DATABASE_URL", "PGPASSWORD"):
        monkeypatch.setenv(name, "never-to-be-seen")
    with ScriptedServer() as server:
        with pytest.raises(EndpointRefused, match=words) as refused:
            decode(server, auth=auth)
        assert "never-to-be-seen" not in str(refused.value)
        assert "typed-in-by-mistake" not in str(refused.value)
        with pytest.raises(EndpointRefused, match=words):
            decode(server, headers={"X-Key": {"env": auth}})
    assert (server.requests, server.looks) == ([], [])


def test_a_key_may_lie_in_a_file_of_the_folder_for_secrets(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SECRETS_DIR = folder = tmp_path / "secrets"
    (folder / "..data").mkdir(parents=True)
    (folder / "..data" / "key").write_text(KEY + "\n")
    (folder / "key").symlink_to("..data/key")  # as Kubernetes lays secrets out
    assert read_headers(str(folder / "key"), {})[0] == {"Authorization": f"Bearer {KEY}"}
    outside = tmp_path / "outside"
    outside.write_text(KEY)
    (folder / "out").symlink_to(outside)
    (folder / "database_url").write_text("postgres://")
    (folder / "named_by_us").write_text("postgres://")
    (folder / "empty").write_text(" \n")
    (folder / "odd").write_text("two\nlines")
    monkeypatch.setenv("DATABASE_URL_FILE", str(folder / "named_by_us"))
    for name, words in {
        "out": "is not under",
        "../outside": "is not under",
        "database_url": "Evalboard's own",
        "named_by_us": "Evalboard's own",
        "missing": "cannot be read on the worker .*: No such file",
        "empty": "is empty",
        "odd": "characters that no header can have",
    }.items():
        with pytest.raises(EndpointRefused, match=words):
            read_headers(f"{folder}/{name}", {})


@pytest.mark.parametrize(
    "headers", [{"Host": "inner"}, {"content-length": "0"}, {"X Y": "a"}, {"X": "a\r\nY: b"}, {"X": 5}]
)
def test_headers_that_would_change_the_call_itself_are_refused(headers: dict[str, Any]) -> None:
    with pytest.raises(EndpointRefused, match="header"):
        read_headers("", headers)


def test_a_name_that_is_not_known_is_no_refusal() -> None:
    """A name server may be back in a moment: the call is tried again, and the endpoint rests if it is not."""
    with ScriptedServer() as server:
        endpoint = an_endpoint(server, base_url="http://nowhere.invalid/v1")
        engine = OpenAIEngine(endpoint, response_seconds=60, concurrency=1, randomness=NoChance())
        engine.open()
        with pytest.raises(EndpointRests, match=r"nowhere\.invalid cannot be resolved"):
            list(engine.decode(questions(1)))
        engine.stop()
