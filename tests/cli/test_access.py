"""Where a command goes, as whom, and what it says when nobody is there."""

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from evalboard.client.access import Access, find_access
from evalboard.client.errors import Unreachable, WrongUse
from tests import build

Call = Callable[..., "CompletedProcess[str]"]


@contextmanager
def running(folder: Path, url: str) -> Iterator[None]:
    """What `evalboard up` keeps in its data folder while it runs."""
    with (folder / "running.json").open("w") as note:
        fcntl.flock(note.fileno(), fcntl.LOCK_EX)
        note.write(json.dumps({"pid": 1, "url": url}))
        note.flush()
        yield


def test_nothing_said_is_64_and_says_what_to_set(evalboard: Call) -> None:
    done = evalboard("wait", "1", EVALBOARD_URL=None, EVALBOARD_TOKEN=None)
    assert (done.returncode, "Set EVALBOARD_URL and EVALBOARD_TOKEN" in done.stderr) == (64, True)


@pytest.mark.nightly
def test_the_server_that_make_up_started_is_found_in_the_data_folder(
    evalboard: Call, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(environment["EVALBOARD_TOKEN"] + "\n")
    run = build.finished_run()
    with running(tmp_path, environment["EVALBOARD_URL"]):
        assert evalboard("wait", str(run.pk), EVALBOARD_URL=None, EVALBOARD_TOKEN=None).returncode == 0


def test_a_server_that_was_killed_is_named_at_once(evalboard: Call, tmp_path: Path) -> None:
    url = "http://127.0.0.1:9"
    (tmp_path / "token").write_text("evb_local")
    with running(tmp_path, url):
        assert find_access({"EVALBOARD_DATA_DIR": str(tmp_path)}).url == url
    with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:9 is not running; start it with `make up`"):
        find_access({"EVALBOARD_DATA_DIR": str(tmp_path)})
    done = evalboard("wait", "1", EVALBOARD_URL=None, EVALBOARD_TOKEN=None)
    assert (done.returncode, done.stderr.count("\n"), "Asking again" in done.stderr) == (4, 1, False)


def test_this_machines_token_goes_to_no_other_server(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("evb_local")
    here = {"EVALBOARD_DATA_DIR": str(tmp_path)}
    with running(tmp_path, "http://127.0.0.1:8800"):
        assert find_access(here) == Access("http://127.0.0.1:8800", "evb_local")
    assert find_access({**here, "EVALBOARD_URL": "http://127.0.0.1:8800/"}).token == "evb_local"
    with pytest.raises(WrongUse, match="EVALBOARD_TOKEN"):
        find_access({**here, "EVALBOARD_URL": "https://elsewhere.example"})


@pytest.mark.parametrize("note", ["", "[]", "{", '{"url": 7}'])
def test_a_damaged_note_is_no_server(tmp_path: Path, note: str) -> None:
    (tmp_path / "running.json").write_text(note)
    with pytest.raises(WrongUse, match="No server is set"):
        find_access({"EVALBOARD_DATA_DIR": str(tmp_path)})


def test_an_address_without_a_scheme_is_64(evalboard: Call) -> None:
    done = evalboard("wait", "1", EVALBOARD_URL="127.0.0.1:8000")
    assert (done.returncode, "starts with http://" in done.stderr) == (64, True)


def test_a_token_that_is_none_is_64(evalboard: Call) -> None:
    done = evalboard("wait", "1", EVALBOARD_TOKEN="evb_nonsense")
    assert (done.returncode, "Check EVALBOARD_TOKEN" in done.stderr) == (64, True)


def test_a_right_that_is_missing_is_64(evalboard: Call) -> None:
    reader = build.token(build.user("reader", "viewer"), "read")
    done = evalboard("run", "colours", "--endpoint", "local", "--profile", "pinned", EVALBOARD_TOKEN=reader)
    assert (done.returncode, "scope run" in done.stderr) == (64, True)


def test_nobody_at_the_address_is_4(evalboard: Call) -> None:
    asked = ("run", "colours", "--endpoint", "local", "--profile", "pinned")
    done = evalboard(*asked, EVALBOARD_URL="http://127.0.0.1:9")
    assert (done.returncode, "does not answer" in done.stderr, done.stderr.count("\n")) == (4, True, 1)


def test_the_command_alone_shows_help_and_is_64(evalboard: Call) -> None:
    done = evalboard()
    assert (done.returncode, "Usage" in done.stdout + done.stderr) == (64, True)
    assert evalboard("--help").returncode == 0
