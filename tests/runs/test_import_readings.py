"""A large log is read after its request was answered: stored whole, or refused, or lost with nothing stored."""

import errno
import os
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.db.models.functions import Now

from evalboard.core.errors import Conflict
from evalboard.importers.files import LogFile
from runs.imports import begin_reading, end_lost_readings, is_large, reading_row
from runs.models import ImportReadingRecord, ImportRecord, RunRecord
from tests.importers import batch_log
from tests.processes import descendants_of
from tests.waiting import wait_until

LOG = batch_log.output({"sky": "blue", "sea": "green"})


@pytest.fixture(autouse=True)
def own_database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)


def begin(folder: Path, content: bytes = LOG, **options: Any) -> ImportReadingRecord:
    """Begin to read a log, whose file is gone at once, as an upload is."""
    file = folder / "output.jsonl"
    file.write_bytes(content)
    given = {"format": "auto", "suite": None, "scale": "", "second_of": "", **options}
    reading = begin_reading(files=[LogFile("output.jsonl", file)], user=None, **given)
    file.unlink()
    return reading


def end_of(reading: ImportReadingRecord) -> Any:
    wait_until(lambda: reading_row(reading.pk).is_terminal)
    return reading_row(reading.pk)


def test_it_is_stored_with_its_reading(tmp_path: Path) -> None:
    first = end_of(begin(tmp_path))
    source = ImportRecord.objects.get()
    assert (first.status, first.imported, first.is_new, first.problem) == ("stored", str(source.pk), True, None)
    assert source.runs.count() == 1


@pytest.mark.nightly
def test_the_same_log_again_names_the_import_that_is_there(tmp_path: Path) -> None:
    first = end_of(begin(tmp_path))
    read = end_of(begin(tmp_path))
    assert (read.status, read.imported, read.is_new) == ("stored", first.imported, False)


def test_a_refusal_is_that_of_a_small_log(tmp_path: Path) -> None:
    read = end_of(begin(tmp_path, b"no log at all"))
    assert (read.status, read.problem.status, read.problem.code) == ("failed", 400, "invalid_input")
    assert "format" in read.problem.fields
    assert not ImportRecord.objects.exists()


def test_a_reading_that_is_killed_stores_nothing_and_says_so(tmp_path: Path) -> None:
    reading = begin(tmp_path, LOG * 50_000)
    [process] = descendants_of(os.getpid(), f"read_import {reading.pk} ")
    process.kill()
    read = end_of(reading)
    assert (read.status, read.problem.code) == ("failed", "reading_lost")
    assert not RunRecord.objects.exists()


def test_a_reading_whose_process_does_not_start_has_failed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.imports.readings.subprocess.Popen", Mock(side_effect=OSError(errno.ENOMEM, "no memory")))
    read = reading_row(begin(tmp_path).pk)
    assert (read.status, read.problem.code) == ("failed", "reading_lost")


def test_a_reading_of_which_nothing_is_heard_is_lost() -> None:
    """Its web server died with it, so that only the sweep can say so."""
    silent, alive = (
        ImportReadingRecord.objects.create(options={}, names=["a"], n_bytes=1, beat_at=Now() - timedelta(hours=hours))
        for hours in (1, 0)
    )
    end_lost_readings()
    assert [reading_row(each.pk).status for each in (silent, alive)] == ["failed", "reading"]


def test_a_fifth_large_log_is_refused(tmp_path: Path) -> None:
    for _ in range(4):
        ImportReadingRecord.objects.create(options={}, names=["a"], n_bytes=1)
    with pytest.raises(Conflict, match="4 large logs are being read already"):
        begin(tmp_path)


def test_what_is_large_is_set(tmp_path: Path, settings: Any) -> None:
    (tmp_path / "log").write_bytes(b"12345")
    settings.IMPORT_WAIT_BYTES = 5
    log = LogFile("log", tmp_path / "log")
    assert (is_large([log]), is_large([log, log])) == (False, True)


def test_a_reading_that_was_taken_for_lost_says_that_it_stored_the_log(tmp_path: Path) -> None:
    """The database was away for longer than a lease, say, and the process went on."""
    reading = begin(tmp_path)
    ImportReadingRecord.objects.filter(pk=reading.pk).update(beat_at=Now() - timedelta(hours=1))
    end_lost_readings()
    assert reading_row(reading.pk).status == "failed"
    wait_until(lambda: ImportRecord.objects.exists())
    read = reading_row(reading.pk)
    assert (read.status, read.problem, read.imported) == ("stored", None, str(ImportRecord.objects.get().pk))
