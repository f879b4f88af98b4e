"""The whole of `evalboard up`: start, SIGKILL of everything, start again, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from evalboard.local.children import wait_until
from tests.local.test_up import free_port
from tests.processes import Process, family_of, is_gone, kill_all

ROOT = Path(__file__).resolve().parents[2]
# In place of an interpreter with vLLM: it lacks no module, makes an empty sample model, and is an engine that takes its
# time. The gate has this one; how vLLM comes up is the same to everything else here.
SCRIPTED_PYTHON = f"""#!/bin/sh
case "$1" in
-c) echo '[]';;
*/sample_model.py) mkdir -p "$2" && echo '{{}}' > "$2/config.json";;
*) SCRIPTED_SECONDS=0.2 exec {sys.executable} {ROOT / "tests/worker/scripted_host.py"} "$@";;
esac
"""
PATIENCE = 300.0
PAUSE_SECONDS = 3.0  # the command line asks every two


class Machine:
    """One `evalboard up --json`, its lines as they come, and every process that it started."""

    def __init__(self, data_dir: Path, *, port: int, engine: dict[str, str]) -> None:
        """engine: the variables that say which engine it has."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        settings = {
            "EVALBOARD_DATA_DIR": str(data_dir),
            **engine,
            # What the killed runner had begun is free again after a lease, which is 90 seconds by itself.
            "EVALBOARD_LEASE_SECONDS": "15",
            "EVALBOARD_HEARTBEAT_SECONDS": "3",
        }
        self.data_dir = data_dir
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "evalboard", "up", "--json", "--port", str(port)],
            env=kept | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: Queue[str] = Queue()
        self.said: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or []:
            self._lines.put(line)

    def wait_for(self, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The first line, from now on, for which `holds`."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                line = self._lines.get(timeout=1)
            except Empty:
                assert self.process.poll() is None, f"it ended with {self.process.returncode}; before: {self.said}"
                continue
            assert line.startswith("{"), line
            self.said.append(json.loads(line))
            if holds(self.said[-1]):
                return self.said[-1]
        raise AssertionError(f"not within {PATIENCE} s; it said {self.said}")

    def family(self) -> list[Process]:
        return family_of(self.process.pid)

    def run(self, run_id: Any) -> dict[str, Any]:
        token = (self.data_dir / "token").read_text().strip()
        answer = httpx.get(
            f"{self.url}/api/v1/runs/{run_id}/", headers={"Authorization": f"Bearer {token}"}, timeout=30
        )
        answer.raise_for_status()
        return answer.json()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture(params=["scripted", pytest.param("vLLM", marks=pytest.mark.engine)])
def engine_python(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The interpreter that runs the engine."""
    if request.param == "vLLM":
        found: Path = request.getfixturevalue("vllm_python")
        return found
    script = tmp_path / "python"
    script.write_text(SCRIPTED_PYTHON)
    script.chmod(0o755)
    return script


@pytest.fixture
def start(data_dir: Path, engine_python: Path) -> Iterator[Callable[[], Machine]]:
    machines: list[Machine] = []
    port = free_port()

    def begin() -> Machine:
        machines.append(Machine(data_dir, port=port, engine={"EVALBOARD_VLLM_PYTHON": str(engine_python)}))
        return machines[-1]

    yield begin
    for machine in machines:
        if machine.process.poll() is None:
            machine.process.terminate()
            machine.process.wait(60)
        if machine.process.stdout:
            machine.process.stdout.close()


def assert_connections_are_kept(machine: Machine) -> None:
    connection = HTTPConnection(machine.url.removeprefix("http://"), timeout=30)
    connection.request("GET", "/api/v1/health")
    connection.getresponse().read()
    held = connection.sock
    time.sleep(PAUSE_SECONDS)
    connection.request("GET", "/api/v1/health")
    assert connection.getresponse().status == 200
    assert connection.sock is held  # not opened anew
    connection.close()


@pytest.mark.nightly
def test_a_kill_of_everything_loses_nothing_and_ctrl_c_leaves_nothing(start):
    first = start()
    link = first.wait_for(lambda said: "url" in said)["url"]
    with httpx.Client(timeout=30, follow_redirects=True) as browser:
        browser.get(link).raise_for_status()  # a page with a button, which changes nothing
        secret = dict(parse_qsl(urlsplit(link).query))
        mark = browser.cookies["evalboard_csrf"]
        browser.post(link, data={**secret, "csrfmiddlewaretoken": mark}, headers={"Referer": link}).raise_for_status()
        assert browser.get(f"{first.url}/runs/").url.path == "/runs/"  # not sent to the login page
    assert_connections_are_kept(first)
    run_id = first.wait_for(lambda said: said.get("n_done", 0) > 0)["run"]
    done_before = first.run(run_id)["progress"]["n_done"]
    killed = first.family()
    kill_all(killed)
    first.process.wait(30)
    assert wait_until(lambda: all(map(is_gone, killed)), PATIENCE)

    second = start()
    second.wait_for(lambda said: "url" in said)
    assert second.run(run_id)["progress"]["n_done"] >= done_before
    second.wait_for(lambda said: said.get("run") == run_id and said["n_done"] > done_before)
    assert len(second.run(run_id)["repeats"]) == 5

    family = second.family()
    second.process.send_signal(signal.SIGINT)
    assert second.process.wait(60) == 0
    assert wait_until(lambda: all(map(is_gone, family)), PATIENCE)
