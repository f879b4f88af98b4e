"""Somebody whom webhooks tell: a real HTTP server on this machine that answers as a test wants it to."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[BaseHTTPRequestHandler], None]


def status(code: int, **headers: str) -> Answer:
    """Answer with a status and no body."""

    def answer(asked: BaseHTTPRequestHandler) -> None:
        asked.send_response(code)
        for name, value in {"Content-Length": "0", **headers}.items():
            asked.send_header(name, value)
        asked.end_headers()

    return answer


def drip(asked: BaseHTTPRequestHandler) -> None:
    """Answer a byte every 50 ms, for ever."""
    asked.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        asked.wfile.write(b"x")
        time.sleep(0.05)


class Receiver:
    """Keeps what it is sent; `answers` are given in turn, the last one again and again."""

    def __init__(self, *answers: Answer, port: int = 0) -> None:
        self.received: list[Received] = []
        self._answers = list(answers) or [status(204)]
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.received.append(Received(self.path, dict(self.headers), body))
                answers = outer._answers
                try:
                    (answers.pop(0) if len(answers) > 1 else answers[0])(self)
                except OSError:
                    self.close_connection = True  # the sender has hung up

            def log_message(self, *said: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = int(self.server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}/hook?team=a"
        self._thread = threading.Thread(target=self.server.serve_forever, args=[0.02])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


@contextmanager
def receiver(*answers: Answer, port: int = 0) -> Iterator[Receiver]:
    found = Receiver(*answers, port=port)
    found.start()
    try:
        yield found
    finally:
        found.stop()
