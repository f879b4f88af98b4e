"""Files, folders and standard input as the files of a log."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.importers import paths
from evalboard.importers.files import LogFile
from evalboard.importers.formats import read_logs
from evalboard.importers.paths import open_logs

LINE = b'{"case": "sky", "answer": "blue"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in {
        "b/one.jsonl": LINE,
        "a.jsonl": LINE,
        "b/notes.md": b"Dear diary",
        ".git/x.jsonl": LINE,
    }.items():
        (tmp_path / "logs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / name).write_bytes(content)
    return tmp_path / "logs"


def test_a_folder_is_the_logs_in_it(folder: Path) -> None:
    with open_logs([folder]) as opened:
        assert [file.name for file in opened.files] == ["a.jsonl", "b/one.jsonl"]
        assert opened.left_out == ["b/notes.md"]
        assert [run.title for run in read_logs(opened.files)[1]] == ["a", "one"]


def test_files_and_folders_are_taken_in_their_order(folder: Path) -> None:
    with open_logs([folder / "b" / "notes.md", folder / "b"]) as opened:
        assert [file.name for file in opened.files] == ["notes.md", "one.jsonl"]


def test_standard_input_is_a_file_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(LINE)))
    with open_logs([Path("-")]) as opened:
        [file] = opened.files
        assert (file.name, read_logs([file])[0], file.read()) == ("stdin", "scores", LINE)
    with pytest.raises(FileNotFoundError):
        LogFile(file.name, file.path).head()


def test_a_folder_without_a_log_and_one_of_too_many_files_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "b" / "one.jsonl").unlink()
    with (
        pytest.raises(InvalidInput, match="b holds no log, but 1 file of no known format"),
        open_logs([folder / "b"]),
    ):
        pass
    (folder / "none").mkdir()
    with pytest.raises(InvalidInput, match="none holds no file"), open_logs([folder / "none"]):
        pass
    monkeypatch.setattr(paths, "MAX_LOOKED_AT", 1)
    with pytest.raises(InvalidInput, match="holds 2 files; the most that is looked at is 1"), open_logs([folder]):
        pass


def test_a_file_that_cannot_be_read_is_named() -> None:
    unreadable = Path("/proc/self/mem")  # for every user, root too
    with (
        pytest.raises(InvalidInput, match="/proc/self/mem cannot be read: Input/output error"),
        open_logs([unreadable]),
    ):
        pass


@pytest.mark.parametrize(
    ("content", "log_format", "sizes"),
    [
        (LINE, "auto", [20, 1]),
        (LINE, "scores", [20, 1]),
        (LINE, "batch", [21]),
        (b'{"custom_id": "a", "result": {"type": "expired"}}', "auto", [21]),
        (b"Dear diary", "auto", [21]),
    ],
)
def test_only_logs_of_one_file_each_are_parted(
    tmp_path: Path, content: bytes, log_format: str, sizes: list[int]
) -> None:
    for n in range(21):
        (tmp_path / f"{n}.jsonl").write_bytes(content)
    with open_logs(sorted(tmp_path.iterdir())) as opened:
        assert [len(group) for group in opened.groups(log_format)] == sizes


def test_logs_of_several_formats_are_sent_one_format_after_another(tmp_path: Path) -> None:
    lines = {"a.jsonl": LINE, "b.jsonl": b'{"choices": []}', "c.jsonl": LINE}
    for name, content in lines.items():
        (tmp_path / name).write_bytes(content)
    with open_logs([tmp_path]) as opened:
        assert [[file.name for file in group] for group in opened.groups("auto")] == [
            ["a.jsonl", "c.jsonl"],
            ["b.jsonl"],
        ]


def test_a_file_that_is_not_there_is_left_to_who_opens_it(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(LINE)
    with open_logs([tmp_path / "a.jsonl", tmp_path / "no.jsonl"]) as opened:
        assert [len(group) for group in opened.groups("auto")] == [2]
