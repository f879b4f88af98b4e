"""Where everything must be there, as under .ci/run, a skipped test has failed, whoever skipped it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REASONS = ("Not on this machine.", "No such part.", "No time.")


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests/house/skipping.py",
        "-rs",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:django",
        "-p",
        "no:xdist",
    ]
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        command, cwd=ROOT, env={**ours, **environment}, capture_output=True, text=True, check=False, timeout=600
    )


def test_a_skip_is_a_failure_where_nothing_may_be_skipped() -> None:
    ended = run(EVALBOARD_REQUIRE_SERVICES="1")
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout
    assert all(f"{reason}; nothing may be skipped here" in ended.stdout for reason in REASONS)
    assert "skipped" not in ended.stdout.splitlines()[-1]
    assert "1 xfailed" in ended.stdout


@pytest.mark.nightly
def test_a_skip_says_its_reason_elsewhere() -> None:
    ended = run(EVALBOARD_REQUIRE_SERVICES="")
    assert ended.returncode == pytest.ExitCode.OK, ended.stdout
    assert all(reason in ended.stdout for reason in REASONS)
    assert "3 skipped, 1 xfailed" in ended.stdout


@pytest.mark.nightly
def test_a_file_that_skips_itself_has_failed_too() -> None:
    ended = run(EVALBOARD_REQUIRE_SERVICES="1", SKIPS_THE_FILE="1")
    assert ended.returncode == pytest.ExitCode.INTERRUPTED, ended.stdout
    assert "No file of this kind.; nothing may be skipped here" in ended.stdout
