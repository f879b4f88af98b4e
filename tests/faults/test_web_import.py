"""A log that hangs its reader hangs nobody else, and what is left of a sender who goes away is nothing."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from django.db.models.functions import Now

from runs.imports import end_lost_readings
from runs.models import ImportReadingRecord, ImportRecord, RunRecord
from tests.faults.site import Site, site
from tests.importers import batch_log
from tests.nursery import Nursery
from tests.processes import Process, wait_for_end
from tests.waiting import HANG_SECONDS, wait_until

SLOW = batch_log.output({"sky": "blue"}) * 200_000  # half a minute of reading and more


@pytest.fixture
def web(database_url: str, tmp_path: Path, nursery: Nursery) -> Iterator[Site]:
    spool = tmp_path / "spool"
    spool.mkdir()
    limits = {"EVALBOARD_IMPORT_CPU_SECONDS": "2", "EVALBOARD_IMPORT_WAIT_MB": "512"}
    with site(tmp_path, database_url, nursery, TMPDIR=str(spool), **limits) as found:
        found.start(threads=4)
        yield found


def readers(web: Site) -> list[Process]:
    return web.descendants("evalboard.importers")


def send(web: Site, said: list[httpx.Response | httpx.TransportError], *, timeout: float) -> threading.Thread:
    def post() -> None:
        try:
            said.append(web.api.post("/imports/", files={"files": ("slow.jsonl", SLOW)}, timeout=timeout))
        except httpx.TransportError as error:
            said.append(error)

    sender = threading.Thread(target=post)
    sender.start()
    return sender


@pytest.mark.nightly
def test_others_are_answered_and_the_log_is_refused(web: Site) -> None:
    said: list[httpx.Response | httpx.TransportError] = []
    sender = send(web, said, timeout=HANG_SECONDS)
    wait_until(lambda: readers(web))
    n_answered = 0

    def has_ended() -> bool:
        nonlocal n_answered
        assert web.get("/api/v1/health").status_code == 200
        n_answered += 1
        return not readers(web)

    wait_until(has_ended, every=0.2)  # the reader is given its seconds by the processor, which asking takes as well
    sender.join()
    assert n_answered > 2
    [answer] = said
    assert isinstance(answer, httpx.Response)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["files"])
    assert not ImportRecord.objects.exists()


@pytest.mark.nightly
def test_a_reader_ends_when_its_sender_leaves(web: Site) -> None:
    said: list[httpx.Response | httpx.TransportError] = []
    sender = send(web, said, timeout=2)
    wait_until(lambda: readers(web))
    [reader] = readers(web)
    sender.join()
    assert isinstance(said[0], httpx.ReadTimeout)
    wait_for_end(reader)
    assert web.get("/api/v1/health").status_code == 200
    assert not ImportRecord.objects.exists()


@pytest.mark.nightly
def test_nothing_lies_about_after_the_web_server_was_killed(web: Site, tmp_path: Path) -> None:
    said: list[httpx.Response | httpx.TransportError] = []
    sender = send(web, said, timeout=HANG_SECONDS)
    wait_until(lambda: readers(web))
    [reader], [process] = readers(web), web.processes()
    process.kill()
    sender.join()
    assert isinstance(said[0], httpx.TransportError)
    wait_until(lambda: not list((tmp_path / "spool").iterdir()))  # the next web process makes one and unlinks it
    wait_for_end(reader)


@pytest.mark.nightly
def test_a_large_log_outlives_its_web_process_and_stores_nothing_where_it_is_killed(
    database_url: str, tmp_path: Path, nursery: Nursery
) -> None:
    with site(tmp_path, database_url, nursery, EVALBOARD_IMPORT_CPU_SECONDS="600") as web:
        web.start(threads=4)
        answer = web.api.post("/imports/", files={"files": ("slow.jsonl", SLOW)})
        assert (answer.status_code, answer.json()["status"]) == (202, "reading")
        wait_until(lambda: readers(web))
        [reader], [importer] = readers(web), web.descendants("read_import")
        [process] = web.processes()
        process.kill()
        wait_until(web.is_alive)
        location = answer.headers["Location"].partition("/api/v1")[2]
        assert web.api.get(location).json()["status"] == "reading"
        importer.kill()
        wait_for_end(importer, reader)
        ImportReadingRecord.objects.update(beat_at=Now() - timedelta(hours=1))  # a lease is over
        end_lost_readings()
        assert web.api.get(location).json()["problem"]["code"] == "reading_lost"
        assert not ImportRecord.objects.exists()
        assert not RunRecord.objects.exists()
