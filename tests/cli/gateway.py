"""What stands between a command and the server: it can be away, come and go, and lose an answer on the way."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.servers import free_port


class Gateway:
    """Passes requests on to a server while it is up; with `loses_an_answer` it hangs up on the first that writes.

    `breaks_after`: of so many that write; on all others it hangs up before the server hears of them.
    """

    def __init__(self, target: str, *, loses_an_answer: bool = False, breaks_after: int | None = None) -> None:
        self.target = urlsplit(target).netloc
        self.loses_an_answer = loses_an_answer
        self.breaks_after = breaks_after
        self.lost: list[int] = []  # the status of each answer that was lost
        self.written: list[str] = []  # the address of each request that writes and was passed on
        self._port = free_port()
        self._serving: tuple[ThreadingHTTPServer, threading.Thread] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Come up, again after `stop` at the same address."""
        server = Listening(("127.0.0.1", self._port), Passing)
        server.gateway = self
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self._serving = server, thread

    def stop(self) -> None:
        """Be away: connections are refused, and those that are open end."""
        if self._serving is None:
            return
        server, thread = self._serving
        server.shutdown()
        thread.join()
        server.server_close()
        self._serving = None


class Listening(ThreadingHTTPServer):
    daemon_threads = True
    gateway: Gateway


class Passing(BaseHTTPRequestHandler):
    server: Listening

    def do_GET(self) -> None:
        self._pass_on()

    def do_POST(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        gateway = self.server.gateway
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.command == "POST":
            if gateway.breaks_after is not None and len(gateway.written) >= gateway.breaks_after:
                self.close_connection = True
                return
            gateway.written.append(self.path)
        wire = http.client.HTTPConnection(gateway.target)
        wire.request(self.command, self.path, body, dict(self.headers))
        answer = wire.getresponse()
        content = answer.read()
        wire.close()
        if self.command == "POST" and gateway.loses_an_answer and not gateway.lost:
            gateway.lost.append(answer.status)
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name in ("Content-Type", "ETag"):
            if value := answer.getheader(name):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        return
