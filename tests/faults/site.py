"""The web side as it is served: PostgreSQL of the test's own and gunicorn, each a process that can be killed."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import psutil

from evalboard.local import postgres
from evalboard.local.children import Child, wait_until

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60.0
RUN = {"suite": "sample", "endpoint": "sample-float32", "profile": "pinned", "repeats": 1}


class Site:
    """gunicorn over a database, and two callers: `api` with the local admin's token, `pages` signed in as that person.

    `manage` runs a management command in the site's environment.
    """

    def __init__(self, folder: Path, database_url: str, **environment: str) -> None:
        self._folder = folder
        own = {"DATABASE_URL": database_url, "EVALBOARD_DATA_DIR": str(folder), "EVALBOARD_SECRET_KEY": "s" * 50}
        self._environment = {**os.environ, "REDIS_URL": "", **own, **environment}
        self._web: Child | None = None
        self._address = ""
        self.api = self.pages = httpx.Client()

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, ROOT / "manage.py", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

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
        command = [sys.executable, "-m", "gunicorn", "evalboard.wsgi", "--bind", f"127.0.0.1:{port}"]
        command += ["--worker-class", "gthread", "--workers", str(workers), "--threads", str(threads)]
        command += ["--no-control-socket"]
        log = self._folder / "web.log"
        self._web = Child("the web server", command, log=log, env=self._environment, cwd=ROOT)
        assert wait_until(lambda: self.is_alive() or self._web.exit_status() is not None, START_SECONDS)  # type: ignore[union-attr]
        assert self.is_alive(), self._web.end_of_log(lines=20)

    def is_alive(self) -> bool:
        try:
            return httpx.get(f"{self._address}/api/v1/health", timeout=5).is_success
        except httpx.TransportError:
            return False

    def processes(self) -> list[psutil.Process]:
        """Those of gunicorn that answer requests."""
        assert self._web is not None
        return psutil.Process(self._web.pid).children()

    def ready(self) -> httpx.Response:
        return httpx.get(f"{self._address}/api/v1/ready", timeout=30)

    def get(self, path: str, **headers: str) -> httpx.Response:
        """As nobody in particular."""
        return httpx.get(f"{self._address}{path}", headers=headers, timeout=30)

    def browser(self) -> httpx.Client:
        """Somebody who is not signed in."""
        return self._client()

    def stop(self) -> None:
        if self._web:
            self._web.stop()
        for client in (self.api, self.pages):
            client.close()

    def _client(self, *, base: str = "", **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self._address + base, timeout=120, **options)


@contextmanager
def site(folder: Path, database_url: str, **environment: str) -> Iterator[Site]:
    """A site that is not served yet; whatever it started ends with the block."""
    found = Site(folder, database_url, **environment)
    try:
        yield found
    finally:
        found.stop()


def kill(server: postgres.Server) -> None:
    """End PostgreSQL the hard way, main process and backends at once, as a power cut does."""
    pid = int((server.folder / "postmaster.pid").read_text().split("\n")[0])
    main = psutil.Process(pid)
    for process in [main, *main.children(recursive=True)]:
        process.kill()
    server.kill()
