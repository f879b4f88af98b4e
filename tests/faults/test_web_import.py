"""A log that hangs its reader hangs nobody else, and what is left of a sender who goes away is nothing."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from evalboard.local.children import wait_until
from runs.models import Import
from tests.faults.site import Site, site
from tests.importers import batch_log
from tests.nursery import Nursery
from tests.processes import command_of, is_gone

SLOW = batch_log.output({"sky": "blue"}) * 200_000  # half a minute of reading and more


@pytest.fixture
def web(database_url: str, tmp_path: Path, nursery: Nursery) -> Iterator[Site]:
    spool = tmp_path / "spool"
    spool.mkdir()
    with site(tmp_path, database_url, nursery, TMPDIR=str(spool), EVALBOARD_IMPORT_CPU_SECONDS="3") as found:
        found.start(threads=4)
        yield found


def readers(web: Site) -> list[psutil.Process]:
    children = [child for process in web.processes() for child in process.children()]
    return [child for child in children if "runs.importers" in command_of(child)]


def send(web: Site, said: list[httpx.Response | httpx.TransportError], *, timeout: float) -> threading.Thread:
    def post() -> None:
        try:
            said.append(web.api.post("/imports/", files={"files": ("slow.jsonl", SLOW)}, timeout=timeout))
        except httpx.TransportError as error:
            said.append(error)

    sender = threading.Thread(target=post)
    sender.start()
    return sender


def test_others_are_answered_and_the_log_is_refused(web: Site) -> None:
    said: list[httpx.Response | httpx.TransportError] = []
    sender = send(web, said, timeout=120)
    assert wait_until(lambda: bool(readers(web)), 60)
    n_answered = 0
    while readers(web):
        assert web.get("/api/v1/health").status_code == 200
        n_answered += 1
        time.sleep(0.1)  # the reader is given its seconds by the processor, which asking takes as well
    sender.join()
    assert n_answered > 2
    [answer] = said
    assert isinstance(answer, httpx.Response)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["files"])
    assert not Import.objects.exists()


def test_a_reader_ends_when_its_sender_leaves(web: Site) -> None:
    said: list[httpx.Response | httpx.TransportError] = []
    sender = send(web, said, timeout=2)
    assert wait_until(lambda: bool(readers(web)), 60)
    reader = readers(web)[0]
    sender.join()
    assert isinstance(said[0], httpx.ReadTimeout)
    assert wait_until(lambda: is_gone(reader), 60)
    assert reader.pid not in [child.pid for child in readers(web)]
    assert web.get("/api/v1/health").status_code == 200
    assert not Import.objects.exists()


def test_nothing_lies_about_after_the_web_server_was_killed(web: Site, tmp_path: Path) -> None:
    said: list[httpx.Response | httpx.TransportError] = []
    sender = send(web, said, timeout=120)
    assert wait_until(lambda: bool(readers(web)), 60)
    reader, process = readers(web)[0], web.processes()[0]
    process.kill()
    sender.join()
    assert isinstance(said[0], httpx.TransportError)
    assert list((tmp_path / "spool").iterdir()) == []
    assert wait_until(lambda: is_gone(reader), 60)
