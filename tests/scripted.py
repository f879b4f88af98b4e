"""A server that speaks OpenAI's protocol over real sockets and plays a script: good answers, and all that breaks.

    with ScriptedServer([status(429, {"Retry-After": "0"}), ok()]) as server:
        ...                      # server.base_url, server.requests, server.n_connections

A script is one answer for every call, a list of answers in turn of which the last stays, or a function from the
request (`Received`) to an answer, with `ok()` for a good one. Without a script every answer is a good one.
"""

import contextlib
import gzip
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

from tests.scripted_answers import Answerer

PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses")


@dataclass(frozen=True)
class Received:
    """One call as it arrived. `number` counts from 1 in the order of arrival; names of headers are in small letters."""

    number: int
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    good: Mapping[str, Any] = field(default_factory=dict)  # the good answer to it

    @property
    def prompt(self) -> str:
        """What is asked last."""
        messages = self.body.get("messages") or self.body.get("input")
        return str(messages[-1]["content"] if messages else self.body.get("prompt"))


@dataclass(frozen=True)
class Reply:
    """What is done with a call: answered whole, after `seconds`, or left in the middle.

    body: an object, bytes as they are, what makes them when they are sent, or None for the good answer. changes:
    fields put over the good answer's. how: "drip" sends a byte now and then for ever, "cut" promises the body and
    hangs up in its middle, "reset" hangs up before a byte, "hang" never answers, "trickle" sends a byte of the body
    now and then for ever, "flood" sends a long body without saying how long it is.
    """

    body: Mapping[str, Any] | bytes | Callable[[], bytes] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    how: Literal["whole", "reset", "drip", "cut", "hang", "trickle", "flood"] = "whole"


Script = Reply | Sequence[Reply] | Callable[[Received], Reply]


def ok(*, headers: Mapping[str, str] | None = None, seconds: float = 0.0, **changes: Any) -> Reply:
    """A good answer; `changes` are fields of its body, such as `system_fingerprint="fp-b"`."""
    return Reply(headers=headers or {}, changes=changes, seconds=seconds)


def status(number: int, /, headers: Mapping[str, str] | None = None, *, words: str = "", **error: Any) -> Reply:
    """A failure in OpenAI's form; `error` are fields beside the message, such as `param` and `code`."""
    message = words or f"The server gave {number}."
    return Reply({"error": {"message": message, "type": "some_error", **error}}, status=number, headers=headers or {})


def unknown_parameter(name: str) -> Reply:
    """The refusal of a parameter, as OpenAI words it."""
    return status(400, words=f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")


def refusing(*names: str) -> Callable[[Received], Reply]:
    """A script that refuses calls with any of these parameters and answers the others."""

    def script(received: Received) -> Reply:
        sent = next((name for name in names if name in received.body), None)
        return unknown_parameter(sent) if sent else ok()

    return script


def as_gpt5(received: Received) -> Reply:
    """A script that refuses what OpenAI's reasoning models refuse, in their words, and answers the rest.

    Its server's answerer should think, and honour neither temperature nor seed.
    """
    body = received.body
    unsupported = {"code": "unsupported_parameter"}
    if body.get("temperature", 1) != 1:
        words = f"Unsupported value: 'temperature' does not support {body['temperature']} with this model. "
        return status(400, words=f"{words}Only the default (1) value is supported.", param="temperature")
    if body.get("logprobs") or "top_logprobs" in body:
        return status(403, words="You are not allowed to request logprobs from this model")
    if "max_tokens" in body:
        words = "Unsupported parameter: 'max_tokens' is not supported with this model. "
        return status(400, words=f"{words}Use 'max_completion_tokens' instead.", param="max_tokens", **unsupported)
    refused = ("top_p", "presence_penalty", "frequency_penalty", "stop")
    if name := next((name for name in refused if name in body), None):
        words = f"Unsupported parameter: '{name}' is not supported with this model."
        return status(400, words=words, param=name, **unsupported)
    ours = ("top_k", "min_p", "repetition_penalty", "min_tokens", "ignore_eos", "chat_template_kwargs")
    return unknown_parameter(name) if (name := next((name for name in ours if name in body), "")) else ok()


def rotating(at: int, before: Reply, after: Reply) -> Callable[[Received], Reply]:
    """A script that answers otherwise from call number `at` on: another fingerprint, another header."""
    return lambda received: before if received.number < at else after


def reset() -> Reply:
    """Hang up before a byte."""
    return Reply(how="reset")


def cut() -> Reply:
    """Promise a whole body and hang up in its middle."""
    return Reply(how="cut")


def drip() -> Reply:
    """Send a byte of the head every 50 ms, for ever."""
    return Reply(how="drip")


def trickle() -> Reply:
    """Begin an answer, and send a byte of it every 50 ms, for ever."""
    return Reply(how="trickle")


def flood() -> Reply:
    """Send 100 MiB of an answer in chunks, without its length."""
    return Reply(how="flood")


def hang() -> Reply:
    """Take the call and never answer."""
    return Reply(how="hang")


def html() -> Reply:
    """A proxy's page in place of an answer, with 200."""
    return Reply(b"<!doctype html><title>Sign in</title><p>Please sign in.", headers={"Content-Type": "text/html"})


def truncated_json() -> Reply:
    """Half an answer that says that it is whole."""
    return Reply(b'{"id": "chatcmpl-1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "The')


def huge(n_bytes: int = 100 * 2**20, *, is_packed: bool = False) -> Reply:
    """A good answer, if it were not for its length; `is_packed`: by gzip, a thousandth on the wire."""

    def body() -> bytes:
        start = b'{"id": "chatcmpl-1", "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "'
        answer = start + b"a" * n_bytes + b'"}}]}'
        return gzip.compress(answer, 1) if is_packed else answer

    return Reply(body, headers={"Content-Encoding": "gzip"} if is_packed else {})


def redirect(url: str) -> Reply:
    """Send the caller elsewhere."""
    return Reply(b"", status=307, headers={"Location": url})


class ScriptedServer:
    """A server on 127.0.0.1, each connection in a thread. Use it as a context manager.

    answerer: what makes good answers; its parts may be set while it runs. Calls are counted in `requests`; what else is
    looked at, such as the list of models, in `looks`.
    """

    def __init__(self, script: Script | None = None, *, answerer: Answerer | None = None, port: int = 0) -> None:
        self.answerer = answerer or Answerer()
        self.script = script if script is not None else ok()
        self.requests: list[Received] = []
        self.looks: list[str] = []
        self.n_connections = 0
        self.most_at_once = 0
        self._n_open = 0
        self._lock = threading.Lock()
        self._is_ending = threading.Event()
        self._sockets: set[socket.socket] = set()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.owner = self
        self.port = int(self._server.server_address[1])
        self.origin = f"http://127.0.0.1:{self.port}"
        self.base_url = f"{self.origin}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End it and every connection."""
        self._is_ending.set()
        self._server.shutdown()
        self._thread.join()
        for connection in list(self._sockets):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()

    @property
    def n_open_connections(self) -> int:
        """How many connections callers hold open now."""
        return len(self._sockets)

    def take(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> tuple[Received, Reply]:
        """Count a call and choose the answer to it."""
        good = self.answerer.answer(path, body) if path in PATHS else {}
        with self._lock:
            received = Received(len(self.requests) + 1, path, headers, body, good)
            self.requests.append(received)
            self._n_open += 1
            self.most_at_once = max(self.most_at_once, self._n_open)
            script = self.script
            if isinstance(script, Reply):
                return received, script
            if isinstance(script, Sequence):
                return received, script[min(received.number, len(script)) - 1]
        return received, script(received)

    def done(self) -> None:
        """Count a call as answered."""
        with self._lock:
            self._n_open -= 1

    def wait(self, seconds: float | None) -> bool:
        """Wait; true where the server is ending."""
        return self._is_ending.wait(seconds)


class _Server(ThreadingHTTPServer):
    owner: ScriptedServer
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: callers hang up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # the head and the body in one piece

    @property
    def owner(self) -> ScriptedServer:
        return self.server.owner  # type: ignore[attr-defined, no-any-return]

    def setup(self) -> None:
        super().setup()
        self.owner.n_connections += 1
        self.owner._sockets.add(self.connection)

    def finish(self) -> None:
        self.owner._sockets.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def do_GET(self) -> None:
        self.owner.looks.append(self.path)
        if self.path != "/v1/models":
            self._send(status(404, words="Not Found"))
            return
        self._send(Reply(self.owner.answerer.models("any")))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        received, reply = self.owner.take(self.path, headers, body)
        with contextlib.ExitStack() as under_way:
            under_way.callback(self.owner.done)
            try:
                if self.path not in PATHS:
                    reply = status(404, words="Not Found")
                if reply.seconds and self.owner.wait(reply.seconds):
                    self.close_connection = True
                    return
                if reply.body is None:
                    reply = replace(reply, body={**received.good, **reply.changes})
                if reply.how == "whole":
                    under_way.close()  # before the caller has the answer, and may call again
                self._play(reply)
            except OSError:
                self.close_connection = True  # the caller has hung up

    def _play(self, reply: Reply) -> None:
        if reply.how == "whole":
            self._send(reply)
            return
        self.close_connection = True
        if reply.how == "hang":
            self.owner.wait(None)
        elif reply.how == "reset":
            # Lingering for no time makes the close a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())
        elif reply.how == "cut":
            data = _encoded(reply.body)
            self._head(reply, len(data))
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
        elif reply.how == "trickle":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while not self.owner.wait(0.05):
                self.wfile.write(b"1\r\n \r\n")
                self.wfile.flush()
        elif reply.how == "flood":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(100):
                self.wfile.write(b"100000\r\n" + b"a" * 2**20 + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not self.owner.wait(0.05):
                self.wfile.write(b"x")
                self.wfile.flush()

    def _send(self, reply: Reply) -> None:
        data = _encoded(reply.body)
        self._head(reply, len(data))
        self.wfile.write(data)
        self.wfile.flush()

    def _head(self, reply: Reply, n_bytes: int) -> None:
        self.send_response_only(reply.status)
        headers = {"Content-Type": "application/json", **reply.headers, "Content-Length": str(n_bytes)}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *said: Any) -> None:
        pass


def _encoded(body: Mapping[str, Any] | bytes | Callable[[], bytes] | None) -> bytes:
    if callable(body):
        return body()
    return body if isinstance(body, bytes) else json.dumps(body or {}).encode()
