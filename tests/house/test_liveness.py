"""/live is answered while every request thread is busy, and says when they stay so."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes import children_of
from tests.servers import free_port
from tests.waiting import HANG_SECONDS, wait_until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.server


def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    """Answer once a pipe is opened for writing, where one is named."""
    if environ["PATH_INFO"] == "/wait":
        Path(os.environ["PIPE"]).read_bytes()
    start("200 OK", [("Content-Length", "0")])
    return []


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, str, subprocess.Popen[bytes]]]:
    """Addresses of pages and of /live, and gunicorn with one thread."""
    web, live = free_port(), free_port()
    os.mkfifo(tmp_path / "pipe")
    own = {
        "EVALBOARD_SECRET_KEY": "s" * 25 + "0123456789" * 3,
        "EVALBOARD_WEB_BIND": f"127.0.0.1:{web}",
        "EVALBOARD_LIVE_BIND": f"127.0.0.1:{live}",
        "EVALBOARD_WEB_PROCESSES": "1",
        "EVALBOARD_WEB_THREADS": "1",
        "EVALBOARD_STALL_SECONDS": "1",
        "PIPE": str(tmp_path / "pipe"),
    }
    command = [sys.executable, "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", "tests.house.test_liveness:app"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | own, stdout=log, stderr=log)
    addresses = f"http://127.0.0.1:{web}", f"http://127.0.0.1:{live}/live"
    try:
        wait_until(lambda: process.poll() is not None or status(addresses[1]) == 200)
        assert process.poll() is None, (tmp_path / "log").read_text()
        yield *addresses, process
    finally:
        process.kill()
        process.wait()


def status(address: str) -> int:
    """Return the status of an answer, 0 without one."""
    try:
        return httpx.get(address, trust_env=False, timeout=HANG_SECONDS).status_code
    except httpx.TransportError:
        return 0


def stall(web: str, live: str, pipe: Path) -> None:
    """Have one request hold the only request thread and another wait for it, until /live says so; then let go."""
    holding, waiting = (threading.Thread(target=status, args=[f"{web}{path}"]) for path in ("/wait", "/"))
    holding.start()
    with pipe.open("wb"):  # returns when the first request reads it
        assert status(live) == 200
        waiting.start()
        wait_until(lambda: status(live) == 503)
    wait_until(lambda: status(live) == 200)
    holding.join()
    waiting.join()


def test_requests_that_wait_in_vain_end_the_liveness(
    server: tuple[str, str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    web, live, _ = server
    stall(web, live, tmp_path / "pipe")
    assert status(live.replace("/live", "/other")) == 404


def test_workers_of_a_reload_are_watched_too(server: tuple[str, str, subprocess.Popen[bytes]], tmp_path: Path) -> None:
    web, live, process = server
    before = children_of(process.pid)  # the listener and the worker
    process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(now := children_of(process.pid)) == 2 and len({*now} - {*before}) == 1)
    stall(web, live, tmp_path / "pipe")


def test_the_listener_ends_with_the_server_however_that_ends(
    server: tuple[str, str, subprocess.Popen[bytes]],
) -> None:
    _, live, process = server
    process.send_signal(signal.SIGKILL)
    wait_until(lambda: status(live) == 0)
