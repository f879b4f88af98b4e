"""The disk of a one-machine installation fills up: database, logs and data folder all lie on it."""

import os
import random
import shutil
import string
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evalboard.local import postgres
from tests.cluster import DATABASE, copy_migrated
from tests.faults.site import RUN, Site, site
from tests.nursery import Nursery
from tests.waiting import wait_until

DISK_BYTES = 360 * 1024**2  # more than what /ready asks for, beside the database
SEGMENT_BYTES = 16 * 1024**2  # of PostgreSQL's write-ahead log
LOG_BYTES_LEFT = """
SELECT (max(segment.segment_number) + 1) * %s - (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)
FROM pg_ls_waldir() AS file, pg_split_walfile_name(file.name) AS segment
"""


@dataclass
class Machine:
    disk: Path
    database: postgres.Server
    web: Site

    def fill(self, *, leave: int) -> None:
        with (self.disk / "ballast").open("wb") as ballast:
            ballast.write(bytes(max(0, shutil.disk_usage(self.disk).free - leave)))

    def make_room(self) -> None:
        (self.disk / "ballast").unlink()

    def rows(self, table: str) -> int:
        with psycopg.connect(self.database.url(DATABASE)) as connection:
            [(n,)] = connection.execute(f"SELECT count(*) FROM {table}").fetchall()  # type: ignore[arg-type]  # noqa: S608
            return int(n)


@pytest.fixture
def machine(tmp_path: Path, nursery: Nursery) -> Iterator[Machine]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=711", "evalboard-test", disk]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("A small disk takes root and the right to mount a tmpfs.")
    database = postgres.Server(disk / "postgres", log=disk / "postgres.log")
    try:
        copy_migrated(database.folder)
        database.start()
        with site(disk, database.url(DATABASE), nursery) as web:
            web.start(threads=4)
            yield Machine(disk, database, web)
    finally:
        database.stop()
        subprocess.run(["umount", "--lazy", disk], check=True)


def big_suite(n_cases: int = 4000) -> dict[str, Any]:
    """About a kilobyte a case that does not compress."""
    letters = random.Random(7)
    cases = [
        {"id": f"case-{number}", "prompt": "".join(letters.choices(string.ascii_letters, k=1000)), "target": "x"}
        for number in range(n_cases)
    ]
    return {"slug": "big", "title": "Big", "max_tokens": 8, "scorer": {"kind": "exact"}, "cases": cases}


@pytest.mark.nightly
def test_what_does_not_fit_is_refused_whole_and_fits_once_there_is_room(machine: Machine) -> None:
    web = machine.web
    assert web.ready().json()["fields"].keys() == {"runner"}
    had = {table: machine.rows(table) for table in ("runs_suite", "runs_suiteversion", "runs_case")}
    machine.fill(leave=500_000)
    assert web.ready().json()["fields"].keys() == {"disk", "runner"}, "before anything had to be refused"

    refused = web.api.post("/suites/", json=big_suite())
    assert (refused.status_code, refused.json()["code"]) == (507, "disk_full")
    assert "nothing of what you sent was stored" in refused.json()["detail"]
    assert "free space" in refused.json()["detail"]
    assert {table: machine.rows(table) for table in had} == had
    assert web.pages.get("/suites/").status_code == 200, "what is there can be read"

    machine.make_room()
    assert "within the last minute" in web.ready().json()["fields"]["disk"]
    assert web.api.post("/suites/", json=big_suite()).status_code == 201
    assert machine.rows("runs_case") == had["runs_case"] + 4000
    assert web.api.post("/runs/", json=RUN).status_code == 201


@pytest.mark.nightly
def test_a_page_is_refused_with_the_same_words(machine: Machine) -> None:
    mark = {"csrfmiddlewaretoken": machine.web.pages.cookies["evalboard_csrf"], "labels": "note=" + "x" * 190}
    here = {"Referer": str(machine.web.pages.base_url)}
    machine.fill(leave=0)
    asked = mark | {**RUN, "repeats": "50"}
    refused = None

    def is_refused() -> bool:  # until the pages that were already there are full, small rows still fit
        nonlocal refused
        refused = machine.web.pages.post("/runs/new/", data=asked, headers=here)
        return refused.status_code != 200

    wait_until(is_refused)
    assert refused is not None
    assert refused.status_code == 507
    for words in ("disk is full", "nothing of what you sent was stored", "free space", "disk_full"):
        assert words in refused.text


@pytest.mark.nightly
def test_a_log_that_cannot_be_written_stops_the_database_and_loses_nothing(machine: Machine) -> None:
    """PostgreSQL then ends itself, fails to recover, and has to be started again once there is room."""
    web, database = machine.web, machine.database
    with psycopg.connect(database.url(DATABASE), autocommit=True) as connection:
        # A checkpoint keeps an old segment as the next one, which then takes no room; a vacuum may fill this one.
        for setting in ("checkpoint_timeout = '1h'", "autovacuum = off"):
            connection.execute(f"ALTER SYSTEM SET {setting}")  # type: ignore[arg-type]
        connection.execute("SELECT pg_reload_conf()")
    run = web.api.post("/runs/", json=RUN).json()["id"]
    machine.fill(leave=10_000_000)  # enough for the rows, too little for the next segment
    with psycopg.connect(database.url(DATABASE), autocommit=True) as connection:
        while connection.execute(LOG_BYTES_LEFT, [SEGMENT_BYTES]).fetchone()[0] > 1_500_000:  # type: ignore[index]
            connection.execute("SELECT pg_logical_emit_message(false, 'filling', repeat('x', 500000))")
    refused = set()

    def is_away() -> bool:
        """What meets the end of the log first may be a page's hint, which PostgreSQL takes back; a row ends it."""
        answer = web.api.post("/suites/", json=big_suite())
        refused.add((answer.status_code, answer.json()["code"]))
        return answer.status_code == 503

    wait_until(is_away)
    assert refused <= {(503, "database_away"), (507, "disk_full")}
    wait_until(lambda: database.exit_status() is not None)  # it gives up while there is no room
    assert web.pages.get("/runs/").status_code == 503

    machine.make_room()
    database.start()
    assert web.api.get("/suites/big/").status_code == 404
    assert web.api.get(f"/runs/{run}/").json()["status"] == "queued"
    assert web.api.post("/suites/", json=big_suite()).status_code == 201
