"""What was asked for once is made once, whatever is lost on the way; a server that is away is waited for."""

import http.client
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import CompletedProcess, Popen
from typing import Any
from urllib.parse import urlsplit

import pytest

from runs.models import Run
from tests import build
from tests.cli.decoding import Decoding
from tests.cli.test_wait import free_port, serve

Call = Callable[..., "CompletedProcess[str]"]
Start = Callable[..., "Popen[str]"]

ASKED = ("run", "colours", "--endpoint", "local", "--profile", "pinned", "--repeats", "1")


@pytest.fixture(autouse=True)
def _catalogue(transactional_db: None) -> None:
    build.suite()
    build.endpoint()
    build.profile()


class Gateway(ThreadingHTTPServer):
    """Passes requests on; of the first that writes, it takes the server's answer and hangs up on the client."""

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        self.target = urlsplit(target).netloc
        self.lost: list[int] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Passing(BaseHTTPRequestHandler):
    server: Gateway

    def do_GET(self) -> None:
        self._pass_on()

    def do_POST(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        wire = http.client.HTTPConnection(self.server.target)
        wire.request(self.command, self.path, body, dict(self.headers))
        answer = wire.getresponse()
        content = answer.read()
        wire.close()
        if self.command == "POST" and not self.server.lost:
            self.server.lost.append(answer.status)
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


@pytest.fixture
def gateway(live_server: Any) -> Iterator[Gateway]:
    server = Gateway(live_server.url)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield server
    server.shutdown()
    serving.join()
    server.server_close()


def test_an_answer_that_is_lost_on_the_way_makes_no_second_run(evalboard: Call, gateway: Gateway) -> None:
    with Decoding(("blue",) * 3):
        done = evalboard(*ASKED, "--wait", EVALBOARD_URL=gateway.url)
    assert gateway.lost == [201], "the server had made the run"
    assert (done.returncode, Run.objects.count()) == (0, 1)
    assert "Asking again for up to 300 s." in done.stderr
    assert done.stdout.startswith(f"Run {Run.objects.get().pk} finished: 100.0 points")


def test_without_wait_it_says_how_to_ask_again(evalboard: Call, gateway: Gateway) -> None:
    done = evalboard(*ASKED, "--key", "ci-4711", EVALBOARD_URL=gateway.url)
    assert (done.returncode, done.stdout) == (4, "")
    assert "ask again with --key ci-4711, and no second one is made" in done.stderr
    again = evalboard(*ASKED, "--key", "ci-4711")
    assert (again.returncode, again.stdout.split()[1]) == (0, str(Run.objects.get().pk))


def test_a_server_that_is_not_up_yet_is_waited_for(started: Start, database_url: str, tmp_path: Path) -> None:
    port = free_port()
    process = started(*ASKED, "--wait", EVALBOARD_URL=f"http://127.0.0.1:{port}")
    assert process.stderr is not None
    assert "Asking again for up to 300 s." in process.stderr.readline()
    server = serve(port, database_url, tmp_path)
    try:
        with Decoding(("blue",) * 3):
            out, _ = process.communicate(timeout=60)
    finally:
        server.terminate()
        server.wait(timeout=20)
    assert (process.returncode, "100.0 points" in out, Run.objects.count()) == (0, True, 1)


def test_a_server_that_stays_away_is_4(evalboard: Call) -> None:
    done = evalboard(*ASKED, "--wait", "--give-up-after", "0.5", EVALBOARD_URL="http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (4, "")
    assert "Whether the run was made is not known" in done.stderr
    assert "Traceback" not in done.stderr
