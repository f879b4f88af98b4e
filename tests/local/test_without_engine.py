"""`ENGINE=none make up`: database, page and worker of a machine that has no engine, and what can be done there."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalboard.local import engine
from evalboard.local.children import wait_until
from evalboard.local.report import CannotStart
from evalboard.local.up import Options
from tests.importers import batch_log
from tests.local.test_lifecycle import Machine
from tests.local.test_up import assert_refused, free_port, run_up
from tests.processes import is_gone

PATIENCE = 180.0


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    up = Machine(tmp_path / "data", port=free_port(), engine={"ENGINE": "none"})
    yield up
    if up.process.poll() is None:
        up.process.terminate()
        up.process.wait(60)
    if up.process.stdout:
        up.process.stdout.close()


def evalboard(machine: Machine, *arguments: str) -> "subprocess.CompletedProcess[str]":
    token = (machine.data_dir / "token").read_text().strip()
    return subprocess.run(
        [sys.executable, "-m", "evalboard", *arguments],
        env={"PATH": "/usr/bin:/bin", "EVALBOARD_URL": machine.url, "EVALBOARD_TOKEN": token, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def rows(machine: Machine, path: str) -> list[dict[str, Any]]:
    token = (machine.data_dir / "token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{machine.url}/api/v1/{path}/", headers=headers, timeout=60)
    return list(answer.raise_for_status().json()["results"])


def test_a_machine_without_an_engine_is_useful_with_endpoints_and_imports(machine: Machine, tmp_path: Path) -> None:
    machine.wait_for(lambda said: "url" in said)
    said = machine.wait_for(lambda said: "No engine is started here (ENGINE=none)" in str(said))
    assert "no sample run" in str(said)
    steps = {row["step"] for row in machine.said if "step" in row}
    assert steps > {"database tables", "static files", "page", "sample suite and profiles", "sample tour"}
    assert {str(row["labels"]) for row in rows(machine, "runs")} == {"{'sample': 'tour'}"}
    assert [row["slug"] for row in rows(machine, "endpoints")] == ["sample-tour"]
    assert sorted(row["slug"] for row in rows(machine, "suites")) == ["sample", "sample-tour"]
    assert [row["verdict"] for row in rows(machine, "releases")] == [
        "not_comparable",
        "ship",
        "no_ship",
        "inconclusive",
    ]
    taken = {"PATH": "/usr/bin:/bin", "EVALBOARD_DATA_DIR": str(machine.data_dir)}
    gone = [sys.executable, "-m", "evalboard", "tour", "--remove"]
    said = subprocess.run(gone, env=taken, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    assert said == "The sample of the tour is gone.\n"
    assert (rows(machine, "runs"), rows(machine, "endpoints"), rows(machine, "releases")) == ([], [], [])
    assert wait_for_a_worker(machine)["state"] == "idle"
    where = ("--base-url", "https://api.example.com/v1", "--model", "gpt-mini", "--key-env", "EXAMPLE_KEY")
    added = evalboard(machine, "endpoint", "add", "mini", *where)
    assert (added.returncode, added.stderr) == (0, "")
    assert "mini" in evalboard(machine, "endpoint", "list").stdout
    log = tmp_path / "output.jsonl"
    log.write_bytes(batch_log.output({"sea": "green"}))
    read = evalboard(machine, "import", str(log))
    assert read.returncode == 0, read.stderr
    assert len(rows(machine, "runs")) == 1
    assert_private(machine.data_dir)
    family = machine.family()
    machine.process.send_signal(signal.SIGINT)
    assert machine.process.wait(60) == 0
    assert wait_until(lambda: all(map(is_gone, family)), 60)


def assert_private(folder: Path) -> None:
    """Check that other accounts may not read what a folder keeps, and that no file of it has a sign-in link."""
    paths = [folder, *folder.rglob("*")]
    assert [path for path in paths if path.lstat().st_mode & 0o077 and not path.is_symlink()] == []
    files = [path for path in paths if path.is_file()]
    assert {folder / "logs" / "web.log", folder / "secret"} <= set(files)
    assert [path for path in files if b"sesame=" in path.read_bytes()] == []


def wait_for_a_worker(machine: Machine) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE
    while not (there := rows(machine, "workers")):
        assert time.monotonic() < deadline, machine.said
        time.sleep(0.5)
    return there[0]


def test_another_word_for_the_engine_is_refused(tmp_path: Path) -> None:
    assert_refused(run_up(tmp_path, ENGINE="gpu"), "ENGINE=gpu", "ENGINE=none")


@pytest.mark.parametrize(
    ("system", "processor", "variables", "reason"),
    [
        ("Linux", "x86_64", {}, None),
        ("Linux", "x86_64", {"ENGINE": ""}, None),
        ("Linux", "x86_64", {"ENGINE": "none"}, "ENGINE=none"),
        ("Linux", "aarch64", {}, "this is Linux aarch64"),
        ("Linux", "aarch64", {"EVALBOARD_VLLM_PYTHON": "/opt/vllm/bin/python"}, None),
        ("Darwin", "arm64", {}, "this is Darwin arm64"),
    ],
)
def test_where_there_is_no_build_of_the_engine_none_is_started(
    monkeypatch: pytest.MonkeyPatch, system: str, processor: str, variables: dict[str, str], reason: str | None
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: processor)
    options = Options.read(variables, port=8800)
    assert (options.without_engine is None) == (reason is None)
    assert reason is None or reason in str(options.without_engine)


def test_an_unknown_choice_is_no_platform() -> None:
    with pytest.raises(CannotStart, match="ENGINE=cpu"):
        engine.missing_reason({"ENGINE": "cpu"})
