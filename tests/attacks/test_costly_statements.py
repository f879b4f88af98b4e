"""What keeps the database busy for a page: gunicorn is asked while another session holds the table that it needs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from django.db import connection, transaction

from runs.models import RunRecord
from tests import build
from tests.faults.site import ROOT, Site, site
from tests.nursery import Nursery
from tests.waiting import wait_until

SECONDS = 2.0


@pytest.fixture
def web(database_url: str, tmp_path: Path, nursery: Nursery) -> Iterator[Site]:
    with site(tmp_path, database_url, nursery, EVALBOARD_STATEMENT_SECONDS=str(SECONDS)) as found:
        found.start()
        yield found


@contextmanager
def held(table: str) -> Iterator[None]:
    """The table, locked by this test against everybody."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


def waits_longer_than_allowed() -> bool:
    """Whether a statement has waited for the table for half as long again as the web server's statements may."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            " AND clock_timestamp() - query_start > make_interval(secs => %s)",
            [1.5 * SECONDS],
        )
        return bool(cursor.fetchone()[0])


def finished_run() -> RunRecord:
    run = build.run(build.suite(), repeats=1)
    build.decode(run, 1, [build.TARGET] * 3, by=build.process())
    return run


def test_a_statement_of_the_web_server_is_stopped_and_said_so(web: Site) -> None:
    with held("runs_worker"):
        page, call = web.pages.get("/workers/"), web.api.get("/workers/")
    for answer in (page, call):
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "30")
        assert "too_slow" in answer.text
        assert f"for {SECONDS:g} seconds" in answer.text
    assert call.json()["code"] == "too_slow"
    assert web.api.get("/workers/").status_code == 200, "the connection goes on"


@pytest.mark.nightly
def test_what_grows_with_a_run_takes_as_long_as_it_takes(web: Site) -> None:
    run = finished_run()
    with ThreadPoolExecutor(2) as pool:
        with held("runs_response"):
            table: Future[httpx.Response] = pool.submit(web.api.get, f"/runs/{run.pk}/cases.csv")
            wait_until(waits_longer_than_allowed)
            assert not table.done()
        assert table.result().status_code == 200
        with held("runs_response"):
            deleted: Future[httpx.Response] = pool.submit(web.api.delete, f"/runs/{run.pk}/")
            wait_until(waits_longer_than_allowed)
            assert not deleted.done()
        assert deleted.result().status_code == 204


@pytest.mark.nightly
def test_nobody_else_has_a_limit(database_url: str) -> None:
    """Migrations, workers and the scheduler start as this does, and not as the web server."""
    program = """
import django; django.setup()
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SHOW statement_timeout")
    print(cursor.fetchone()[0])
"""
    environment = {**os.environ, "DATABASE_URL": database_url, "DJANGO_SETTINGS_MODULE": "evalboard.settings"}
    command = [sys.executable, "-c", program]
    said = [
        subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout.strip()
        for line in (command, [*command[:2], "import evalboard.wsgi\n" + program])
    ]
    assert said == ["0", "15s"]
