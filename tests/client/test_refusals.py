"""What a server or a gateway refuses with is one sentence, and of two kinds: wrong, or not now."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from evalboard.client.errors import Unreachable, WrongUse
from evalboard.client.rest import RestClient

HTML, PROBLEM = "text/html; charset=utf-8", "application/problem+json"
NOT_NOW = "{url} cannot answer now:"


class Refusing(BaseHTTPRequestHandler):
    answer: tuple[int, str, str]  # status, media type, body

    def do_GET(self) -> None:
        status, media_type, body = self.answer
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def problem(code: str, status: int, **fields: str) -> str:
    head = {"type": "about:blank", "title": "No", "status": status, "detail": "It is refused.", "request_id": "1"}
    return json.dumps({**head, "code": code, "mood": "new", **({"fields": fields} if fields else {})})


@pytest.mark.parametrize(
    ("answer", "kind", "sentence"),
    [
        pytest.param((502, HTML, "<h1>"), Unreachable, f"{NOT_NOW} it answered with 502 Bad Gateway.", id="gateway"),
        pytest.param((404, HTML, "<h1>"), WrongUse, "it answered with 404 Not Found.", id="another site"),
        pytest.param((200, HTML, "<h1>"), WrongUse, "{url} is no Evalboard: it answered with text/html.", id="a page"),
        pytest.param((409, PROBLEM, "{}"), WrongUse, "it answered with 409 Conflict.", id="no problem of ours"),
        pytest.param((503, PROBLEM, problem("x", 503)), Unreachable, f"{NOT_NOW} It is refused.", id="503"),
        pytest.param((429, PROBLEM, problem("too_many_requests", 429)), Unreachable, "It is refused.", id="not now"),
        pytest.param(
            (401, PROBLEM, problem("x", 401)), WrongUse, "It is refused. Check EVALBOARD_TOKEN.", id="stranger"
        ),
        pytest.param((400, PROBLEM, problem("x", 400, a="Bad.")), WrongUse, "It is refused. a: Bad.", id="fields"),
    ],
)
def test_a_refusal_is_one_sentence(
    url: str, monkeypatch: pytest.MonkeyPatch, answer: tuple[int, str, str], kind: type[Exception], sentence: str
) -> None:
    monkeypatch.setattr(Refusing, "answer", answer, raising=False)
    with RestClient(url, "evb_x") as client, pytest.raises(kind) as raised:
        client.run("1")
    assert str(raised.value) == sentence.format(url=url)
