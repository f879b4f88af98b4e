"""docs/ci/release-candidate.sh as CI runs it: a live server, a worker of its own, and the scripted engine."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runs.models import BaselineRecord, ReleaseRecord, RunRecord
from tests import build
from tests.cli.conftest import ROOT
from tests.nursery import Nursery
from tests.worker.conftest import kill_group

SCRIPT = ROOT / "docs" / "ci" / "release-candidate.sh"
SECONDS = 240  # two runs on a machine that others share
CASES = [{"id": f"case-{number}", "prompt": "say blue", "target": "blue"} for number in range(8)]
LENIENT = {"slug": "lenient", "rule": "paired", "tolerance_points": 15.0}

Judge = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def secret(transactional_db: None) -> str:
    """A token that may sign: the script sets a baseline."""
    return build.token(build.user("ci", "release manager"), "read", "run", "sign")


@pytest.fixture
def worker(database_url: str, scripted_python: Path, nursery: Nursery, tmp_path: Path) -> Iterator[None]:
    variables = {
        "DATABASE_URL": database_url,
        "EVALBOARD_VLLM_PYTHON": str(scripted_python),
        "EVALBOARD_DATA_DIR": str(tmp_path),
        "REDIS_URL": "",
    }
    started = nursery.start("worker", environment={**os.environ, **variables})
    yield
    kill_group(started)


@pytest.fixture
def judge(environment: dict[str, str], tmp_path: Path) -> Judge:
    """Run the script with nothing on PATH but a shell's tools, Python and the command."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name, call in {"evalboard": "-m evalboard ", "python3": ""}.items():
        file = bin_folder / name
        file.write_text(f'#!/bin/sh\nexec {sys.executable} {call}"$@"\n')
        file.chmod(0o755)

    def call(suite: dict[str, Any], *named: str) -> "subprocess.CompletedProcess[str]":
        file = tmp_path / f"{named[0]}.json"
        file.write_text(json.dumps({"title": named[0], "scorer": {"kind": "exact"}, "cases": CASES, **suite}))
        variables = {**environment, "PATH": f"{bin_folder}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
        command = ["sh", "-eu", str(SCRIPT), str(file), *named]
        return subprocess.run(
            command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    return call


@pytest.mark.nightly
@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("suite", "code", "word"),
    [
        pytest.param({"policy": LENIENT}, 0, "ship", id="ship"),
        pytest.param({}, 2, "inconclusive", id="too few cases for the strict policy", marks=pytest.mark.nightly),
    ],
)
def test_ten_lines_from_a_file_to_a_verdict(judge: Judge, suite: dict[str, Any], code: int, word: str) -> None:
    build.endpoint("scripted", line="scripted")
    build.profile()
    done = judge(suite, "words", "scripted")
    assert done.returncode == code, done.stderr
    first, second = RunRecord.objects.order_by("pk")
    release = ReleaseRecord.objects.get()
    assert BaselineRecord.objects.get().run == first
    assert (release.gates.get().candidate_run, release.gates.get().baseline_run) == (second, first)
    [line] = [line for line in done.stdout.splitlines() if line.startswith("Release ")]
    assert line.startswith(f"Release {release.pk}: {word}. http://")
    assert line.endswith(f"/releases/{release.pk}/")


@pytest.mark.nightly
def test_the_first_thing_that_goes_wrong_ends_it_with_its_own_code(judge: Judge) -> None:
    done = judge({}, "words", "nowhere")
    assert (done.returncode, "There is no endpoint nowhere" in done.stderr) == (64, True)
    assert judge({"cases": []}, "words", "nowhere").returncode == 64
    assert not RunRecord.objects.exists()


def test_it_is_ten_lines() -> None:
    assert len([line for line in SCRIPT.read_text().splitlines() if not line.startswith("# ")]) <= 10
