"""An export that breaks while it is sent is seen to have broken, and the server goes on."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from django.db import connection

from evalboard.core.archive import RunArchive
from runs.models import RunRecord
from tests.faults.site import Site, site
from tests.nursery import Nursery
from tests.runs.test_exports import large_run
from tests.waiting import wait_until

LEASE_SECONDS = 3
READERS = """
SELECT pid FROM pg_stat_activity
 WHERE backend_xmin IS NOT NULL AND backend_type = 'client backend' AND datname = current_database()
   AND pid <> pg_backend_pid()
"""
TEXT = "blue sky " * 1500  # more for each response than a connection's buffers swallow for all of them


@pytest.fixture
def web(database_url: str, tmp_path: Path, nursery: Nursery) -> Iterator[Site]:
    lease = {"EVALBOARD_LEASE_SECONDS": str(LEASE_SECONDS), "EVALBOARD_HEARTBEAT_SECONDS": "1"}
    with site(tmp_path, database_url, nursery, **lease) as found:
        found.start(threads=2)
        yield found


@pytest.fixture
def run(web: Site) -> RunRecord:
    return large_run(n_cases=2000, repeats=1, text=TEXT)


def readers() -> list[int]:
    """The backends that hold a snapshot, whether they fetch rows at this moment or wait for who reads them."""
    with connection.cursor() as cursor:
        cursor.execute(READERS)
        return [pid for (pid,) in cursor.fetchall()]


def end_session() -> None:
    """As an administrator does, or a database that restarts."""
    wait_until(lambda: len(readers()) == 1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", readers())


def take_nothing() -> None:
    wait_until(lambda: len(readers()) == 1)
    wait_until(lambda: readers() == [])


def take(web: Site, path: str, between: Callable[[], None]) -> None:
    """Read an answer, with something happening after its first part."""
    with web.api.stream("GET", path) as answer:
        parts = answer.iter_bytes()
        next(parts)
        between()
        for _ in parts:
            pass


def test_a_break_is_seen_and_the_server_goes_on(web: Site, run: RunRecord) -> None:
    path = f"/runs/{run.pk}/cases.jsonl"
    for between in (end_session, take_nothing):
        with pytest.raises(httpx.RemoteProtocolError):
            take(web, path, between)

    with web.api.stream("GET", path) as answer:
        next(answer.iter_bytes())  # and goes away
    wait_until(lambda: not readers())  # else the snapshot outlives its reader

    whole = web.api.get(path)
    assert len(whole.text.splitlines()) == int(whole.headers["X-Row-Count"]) == 2000
    RunArchive(io.BytesIO(web.api.get(f"/runs/{run.pk}/export/").content)).check()
