"""Redis is away: runs are asked for and shown all the same, and pages and API say that they start later."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalboard.local.children import Child
from runs.models import Event
from tests import build
from tests.faults.site import RUN, Site, site
from tests.nursery import Nursery
from tests.waiting import wait_until


class Redis:
    """A redis-server of the test's own, which keeps nothing."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server") or pytest.skip(
            "No redis-server; Debian has it as the package `redis-server`."
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._folder = folder
        self._child: Child | None = None

    def start(self) -> None:
        self._child = Child("redis", self._command, log=self._folder / "redis.log", cwd=self._folder)
        wait_until(self._answers)

    def signal(self, number: signal.Signals) -> None:
        assert self._child is not None
        subprocess.run(["kill", f"-{int(number)}", str(self._child.pid)], check=True)

    def kill(self) -> None:
        if self._child:
            self._child.kill()

    def _answers(self) -> bool:
        with socket.socket() as trial:
            return trial.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def web(redis: Redis, database_url: str, tmp_path: Path, nursery: Nursery) -> Iterator[Site]:
    with site(tmp_path, database_url, nursery, REDIS_URL=redis.url) as found:
        found.start()
        yield found


def ask(web: Site) -> int:
    """Ask for a run and return its id. An attempt to connect to Redis that had no bound would never let this end."""
    answer = web.api.post("/runs/", json=RUN)
    assert answer.status_code == 201
    return int(answer.json()["id"])


def is_delayed(run_id: int) -> bool:
    return Event.objects.filter(run=run_id, code="queue_delayed").exists()


def warnings(web: Site) -> list[str]:
    answer = web.ready()
    assert answer.status_code == 200
    return [warning["code"] for warning in answer.json()["warnings"]]


@pytest.mark.nightly
def test_runs_are_asked_for_while_redis_is_away(web: Site, redis: Redis) -> None:
    build.worker()
    assert warnings(web) == []
    run_id = ask(web)
    assert not is_delayed(run_id)

    redis.kill()
    run_id = ask(web)
    assert is_delayed(run_id)
    assert web.api.get(f"/runs/{run_id}/").json()["status"] == "queued"
    assert web.pages.get(f"/runs/{run_id}/").status_code == 200
    wait_until(lambda: warnings(web) == ["queue_delayed"])

    redis.start()
    run_id = ask(web)
    assert not is_delayed(run_id)
    wait_until(lambda: warnings(web) == [])


@pytest.mark.nightly
def test_a_redis_that_hangs_holds_nobody_up(web: Site, redis: Redis) -> None:
    """It takes the connection and says nothing more, as a frozen machine does."""
    build.worker()
    ask(web)
    redis.signal(signal.SIGSTOP)
    try:
        run_id = ask(web)
        assert is_delayed(run_id)
        wait_until(lambda: warnings(web) == ["queue_delayed"])
    finally:
        redis.signal(signal.SIGCONT)
