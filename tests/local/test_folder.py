"""The data folder: one process at a time, and every obstacle in one sentence."""

import subprocess
import sys

import pytest

from evalboard.local import folder as folder_module
from evalboard.local.folder import DataFolder
from evalboard.local.report import CannotStart

HOLDER = """
import sys, time
from pathlib import Path
from evalboard.local.folder import DataFolder
folder = DataFolder(Path(sys.argv[1]))
folder.prepare()
folder.hold({"pid": 4711, "url": "http://127.0.0.1:8899"})
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path):
    made = DataFolder(tmp_path / "data")
    made.prepare()
    return made


def test_a_second_process_is_told_who_has_the_folder_and_a_kill_lets_it_go(folder):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, folder.path], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(CannotStart, match=r"already runs .* at http://127.0.0.1:8899 \(process 4711\)"):
        folder.hold({})
    holder.kill()
    holder.wait()
    holder.stdout.close()
    folder.hold({})
    folder.release()


def test_the_secret_is_random_stays_the_same_and_is_for_this_user_only(folder, tmp_path):
    secret = folder.secret()
    assert folder.secret() == secret
    assert len(secret) >= 50
    assert (folder.path / "secret").stat().st_mode & 0o077 == 0
    other = DataFolder(tmp_path / "other")
    other.prepare()
    assert other.secret() != secret


def test_a_long_log_is_put_aside_when_the_folder_is_taken_and_a_short_one_goes_on(folder, monkeypatch):
    monkeypatch.setattr(folder_module, "LOG_BYTES", 10)
    (folder.logs / "web.log").write_text("a line that is long")
    (folder.logs / "runner.log").write_text("short")
    folder.hold({})
    assert (folder.logs / "web.log.1").read_text() == "a line that is long"
    assert not (folder.logs / "web.log").exists()
    assert (folder.logs / "runner.log").read_text() == "short"
    folder.release()


def test_what_another_version_left_open_is_closed_to_others(tmp_path):
    made = DataFolder(tmp_path / "data")
    made.prepare()
    log, shared = made.logs / "load_samples.log", tmp_path / "shared"
    log.write_text("a link")
    shared.mkdir()
    (made.sample_model.parent / "linked").symlink_to(shared)
    for path in (made.path, made.logs, log, shared):
        path.chmod(0o755)
    made.prepare()
    assert [path.stat().st_mode & 0o077 for path in (made.path, made.logs, log)] == [0, 0, 0]
    assert shared.stat().st_mode & 0o777 == 0o755


def test_a_folder_that_keeps_more_than_ours_stays_open_and_what_is_ours_is_closed(tmp_path):
    (tmp_path / "notes.txt").write_text("of somebody else")
    tmp_path.chmod(0o755)
    made = DataFolder(tmp_path)
    made.prepare()
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert made.logs.stat().st_mode & 0o777 == 0o700


def test_an_empty_secret_is_no_secret(folder):
    (folder.path / "secret").write_text("")
    assert len(folder.secret()) >= 50


def test_a_folder_that_cannot_be_made_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match=r"cannot be written \(Not a directory\).*EVALBOARD_DATA_DIR"):
        DataFolder(tmp_path / "file" / "data").prepare()


def test_a_nearly_full_disk_is_refused_with_both_sizes(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_module, "FREE_BYTES", 1 << 60)  # more than any disk has
    with pytest.raises(CannotStart, match=r"has [\d.]+ GiB free and 1073741824 GiB is needed"):
        DataFolder(tmp_path / "data").prepare()
