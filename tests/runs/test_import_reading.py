"""Logs are read in a process of their own: whatever ends that, the import is refused with a reason, and it is gone."""

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.errors import Conflict, InvalidInput
from evalboard.importers import formats
from evalboard.importers.files import LogFile
from runs.imports import import_reading
from tests.importers import batch_log
from tests.processes import Process, descendants_of
from tests.waiting import wait_until

LINE = batch_log.output({"sky": "blue"})
N_SLOW = 60_000  # lines: seconds of reading, and more memory than the least that may be set
DEEP = 200_000

Written = Callable[[str, bytes], LogFile]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(name: str, content: bytes) -> LogFile:
        (tmp_path / name).write_bytes(content)
        return LogFile(name, tmp_path / name)

    return write


@pytest.fixture
def slow(written: Written) -> LogFile:
    """A log whose reading takes seconds."""
    return written("slow.jsonl", LINE * N_SLOW)


def read(*files: LogFile, is_wanted: Callable[[], bool] = lambda: True) -> Any:
    return import_reading.read(files, format=formats.AUTO, scale="", is_wanted=is_wanted)


def readers() -> list[Process]:
    return descendants_of(os.getpid(), "evalboard.importers")


def problem(*files: LogFile) -> str:
    with pytest.raises(InvalidInput) as refused:
        read(*files)
    assert not readers()
    assert refused.value.fields.keys() == {"files"}
    return refused.value.fields["files"]


def test_what_the_readers_find_arrives(written: Written) -> None:
    log = written("output.jsonl", LINE + batch_log.output({"sea": "green"}))
    expected = formats.read_logs([log])
    assert read(log) == expected
    assert not readers()


def test_a_refusal_of_the_readers_arrives(written: Written) -> None:
    log = written("output.jsonl", LINE + b"{\n{\n")
    with pytest.raises(InvalidInput) as expected:
        formats.read_logs([log])
    with pytest.raises(InvalidInput) as refused:
        read(log)
    assert refused.value.fields == expected.value.fields
    assert refused.value.detail == expected.value.detail


def test_a_log_that_takes_the_processor_is_refused(slow: LogFile, settings: Any) -> None:
    settings.IMPORT_CPU_SECONDS = 1
    assert problem(slow).startswith("Reading them takes more than 1 s of the processor.")


def test_a_log_that_takes_time_is_refused(slow: LogFile, settings: Any) -> None:
    settings.IMPORT_SECONDS = 1
    assert problem(slow).startswith("Reading them takes longer than 1 s.")


def test_a_log_that_takes_memory_is_refused(written: Written, settings: Any) -> None:
    settings.IMPORT_MEMORY_BYTES = 256 << 20
    hog = written("hog.json", b'{"eval":{"task":"t"},"samples":[' + b"[]," * (8 << 20) + b"[]]}")
    assert problem(hog).startswith("Reading them takes more than 256 MiB of memory.")


def test_records_beyond_the_cap_are_refused(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_reading, "MAX_RECORD_BYTES", 1 << 20)
    long = written("long.jsonl", batch_log.output({f"sky-{n}": "blue" for n in range(8000)}))
    assert problem(long).startswith("They hold more than 1 MiB of records.")


def test_a_reader_that_dies_is_said_and_logged(slow: LogFile, caplog: pytest.LogCaptureFixture) -> None:
    """As when the kernel ends it because the machine has no memory left."""

    def kill() -> None:
        wait_until(readers)
        readers()[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    assert problem(slow).startswith("The reader failed.")
    killer.join()
    assert "ended with -9" in caplog.text


STARTS_A_READER = """
import json, os, subprocess, sys
task = json.dumps({**json.loads(sys.argv[1]), "parent": os.getpid()})
subprocess.run([sys.executable, "-m", "evalboard.importers"], input=task, text=True)
"""


def test_a_reader_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """As when a web process is killed. The log is a pipe that nobody writes to, so the reader never ends by itself."""
    log = tmp_path / "log.jsonl"
    os.mkfifo(log)
    limits = {"cpu_seconds": 3600, "memory_bytes": 1 << 32, "seconds": 3600}
    task = json.dumps({"files": [(log.name, str(log))], "format": "batch", "scale": "", "limits": limits})
    command = [sys.executable, "-c", STARTS_A_READER, task]
    with subprocess.Popen(command, cwd=import_reading.settings.BASE_DIR) as starter, log.open("wb") as pipe:
        starter.kill()  # not before the reader has opened the pipe: until then nobody can write to it
        last_reader_left = select.poll()
        last_reader_left.register(pipe, select.POLLERR)
        assert last_reader_left.poll()


def test_nobody_reads_on_for_a_sender_who_has_left(slow: LogFile) -> None:
    with pytest.raises(import_reading.SenderLeft):
        read(slow, is_wanted=lambda: not readers())
    assert not readers()


def test_beyond_the_most_imports_at_a_time_one_is_told_so(written: Written) -> None:
    held = [import_reading.taken_in() for _ in range(import_reading.MAX_IMPORTS)]
    for each in held:
        each.__enter__()
    try:
        with pytest.raises(Conflict), import_reading.taken_in():
            raise AssertionError
    finally:
        for each in held:
            each.__exit__(None, None, None)
    with import_reading.taken_in():
        pass


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"[" * DEEP, id="lists"),
        pytest.param(b'{"a":' * DEEP, id="objects"),
        pytest.param(b'{"a":' + b"[" * DEEP, id="lists in an object"),
        pytest.param(b'{"eval":{"task":"t"},"samples":' + b"[" * DEEP, id="inspect"),
        pytest.param(b'{"results":{"prompts":' + b"[" * DEEP, id="promptfoo"),
        pytest.param(b'{"results":{},"configs":' + b"[" * DEEP, id="lm_eval"),
        pytest.param(LINE.rstrip()[:-1] + b',"x":' + b"[" * DEEP + b"]" * DEEP + b"}", id="batch"),
        pytest.param(b'{"choices":[],"x":' + b"[" * DEEP + b"]" * DEEP + b"}", id="chat"),
        pytest.param(b'{"choices":[' + b"9" * 5000 + b"]}", id="a number of many digits"),
        pytest.param(b'{"choices":[' + b"1" * 100 + b"e999999999]}", id="a number beyond all"),
        pytest.param(b'data: {"choices":' + b"[" * DEEP + b"\n\n", id="an event"),
        pytest.param(b'{"choices":"' + b"\\u0041" * DEEP + b'"', id="a text without an end"),
    ],
)
@pytest.mark.parametrize("format_name", [formats.AUTO, *formats.FORMATS])
def test_nothing_that_is_sent_breaks_a_reader(written: Written, content: bytes, format_name: str) -> None:
    """In this process: the limits of the other are no help here."""
    log = written("log.jsonl", content)
    with suppress(InvalidInput):
        formats.read_logs([log], format=format_name)
