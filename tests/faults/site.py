"""The web side as it is served: PostgreSQL of the test's own and gunicorn, each a process that can be killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from evalboard.local import postgres
from evalboard.local.up import KEEP_ALIVE_SECONDS
from tests.nursery import Nursery, Process
from tests.processes import Process as SystemProcess
from tests.processes import children_of, descendants_of, family_of, kill_all, main_process
from tests.waiting import HANG_SECONDS, wait_until

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 10.0
RUN = {"suite": "sample", "endpoint": "sample-float32", "profile": "pinned", "repeats": 1}


class Site:
    """gunicorn over a database, and two callers: `api` with the local admin's token, `pages` signed in as that person.

    `manage` runs a management command in the site's environment. Processes come out of a `nursery`, or from fresh
    interpreters where there is none.
    """

    def __init__(self, folder: Path, database_url: str, nursery: Nursery | None, **environment: str) -> None:
        self._folder = folder
        self._nursery = nursery
        own = {"DATABASE_URL": database_url, "EVALBOARD_DATA_DIR": str(folder), "EVALBOARD_SECRET_KEY": "s" * 50}
        self._environment = {**os.environ, "REDIS_URL": "", **own, **environment}
        self._web: Process | subprocess.Popen[bytes] | None = None
        self._address = ""
        self.api = self.pages = httpx.Client()

    def manage(self, *arguments: str) -> str:
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            status = self._start_process("manage", *arguments, out=out.fileno(), err=err.fileno()).wait()
            out.seek(0)
            err.seek(0)
            assert status == 0, err.read()
            return out.read()

    def start(self, *, workers: int = 1, threads: int = 8) -> None:
        """Start it over a migrated database that has the samples, and sign in."""
        link = json.loads(self.manage("load_samples", "--no-runs").splitlines()[-1])["signin"]
        self.serve(workers=workers, threads=threads)
        token = (self._folder / "token").read_text().strip()
        self.api = self._client(base="/api/v1", headers={"Authorization": f"Bearer {token}"})
        self.pages = self._client(follow_redirects=True)
        secret = parse_qs(urlsplit(link).query)["sesame"][0]
        self.pages.get(link)
        sent = {"sesame": secret, "csrfmiddlewaretoken": self.pages.cookies["evalboard_csrf"]}
        assert self.pages.post("/signin/", data=sent).url.path == "/", "nobody is signed in"

    def serve(self, *, workers: int = 1, threads: int = 8) -> None:
        """Start gunicorn only."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._address = f"http://127.0.0.1:{port}"
        options = ["--bind", f"127.0.0.1:{port}", "--worker-class", "gthread", "--workers", str(workers)]
        options += ["--threads", str(threads), "--no-control-socket", "--keep-alive", str(KEEP_ALIVE_SECONDS)]
        log = self._folder / "web.log"
        with log.open("ab") as out:
            self._web = self._start_process("gunicorn", "evalboard.wsgi", *options, out=out.fileno(), err=out.fileno())
        wait_until(lambda: self.is_alive() or self._web.poll() is not None)  # type: ignore[union-attr]
        assert self._web.poll() is None, log.read_text()[-4000:]

    def is_alive(self) -> bool:
        try:
            return httpx.get(f"{self._address}/api/v1/health", timeout=5).is_success
        except httpx.TransportError:
            return False

    def processes(self) -> list[SystemProcess]:
        """Those of gunicorn that answer requests."""
        assert self._web is not None
        return children_of(self._web.pid)

    def descendants(self, words: str) -> list[SystemProcess]:
        """What those started whose command has these words."""
        assert self._web is not None
        return descendants_of(self._web.pid, words)

    def ready(self) -> httpx.Response:
        return httpx.get(f"{self._address}/api/v1/ready", timeout=HANG_SECONDS)

    def get(self, path: str, **headers: str) -> httpx.Response:
        """As nobody in particular."""
        return httpx.get(f"{self._address}{path}", headers=headers, timeout=HANG_SECONDS)

    def browser(self) -> httpx.Client:
        """Somebody who is not signed in."""
        return self._client()

    def stop(self) -> None:
        for client in (self.api, self.pages):
            client.close()
        if self._web:
            self._web.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._web.wait(STOP_SECONDS)
            self._web.kill()
            self._web.wait()

    def _start_process(self, module: str, *arguments: str, out: int, err: int) -> Process | subprocess.Popen[bytes]:
        """In a process group of its own, as what people start."""
        if self._nursery:
            return self._nursery.start(module, *arguments, environment=self._environment, out=out, err=err)
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=out, stderr=err, process_group=0)

    def _client(self, *, base: str = "", **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self._address + base, timeout=HANG_SECONDS, **options)


@contextmanager
def site(folder: Path, database_url: str, nursery: Nursery | None = None, **environment: str) -> Iterator[Site]:
    """A site that is not served yet; whatever it started ends with the block."""
    found = Site(folder, database_url, nursery, **environment)
    try:
        yield found
    finally:
        found.stop()


def kill(server: postgres.Server) -> None:
    """End PostgreSQL the hard way, main process and backends at once, as a power cut does."""
    kill_all(family_of(main_process(server)))
    server.kill()
