"""The database is killed under the pages and the API, and comes back."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest

from evalboard.local import postgres
from runs.health.read import DATABASE_SECONDS
from tests.cluster import DATABASE, copy_migrated
from tests.faults.site import RUN, Site, kill, site
from tests.nursery import Nursery
from tests.processes import family_of, main_process
from tests.waiting import wait_until

THREADS = 4
N_AT_ONCE = 3 * THREADS  # so many that each thread answers one


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.Server]:
    folder = tmp_path_factory.mktemp("pg")
    copy_migrated(folder / "postgres")
    server = postgres.Server(folder / "postgres", log=folder / "postgres.log")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def web(database: postgres.Server, tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("web"), database.url(DATABASE), nursery) as found:
        found.start(threads=THREADS)
        yield found


@pytest.fixture
def away(database: postgres.Server, web: Site) -> Iterator[None]:
    """The database is killed after every thread of the server has a connection to it."""
    at_once(web, "/runs/", n=N_AT_ONCE)
    kill(database)
    yield
    database.start()


def at_once(web: Site, path: str, *, n: int) -> list[httpx.Response]:
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(lambda _: web.pages.get(path), range(n)))


@pytest.mark.usefixtures("away")
def test_pages_forms_rest_and_metrics_say_that_the_database_is_away_and_what_needs_none_answers(web: Site) -> None:
    for path in ("/", "/runs/", "/runs/1/?part=progress", "/runs/new/", "/workers/", "/settings/"):
        answer = web.pages.get(path)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5"), path
        assert answer.headers["Cache-Control"] == "no-store"
        assert "text/html" in answer.headers["Content-Type"]
        for words in ("The database does not answer.", "Try again in a moment.", "database_away"):
            assert words in answer.text
        assert answer.headers["X-Request-Id"] in answer.text
    mark = web.pages.cookies["evalboard_csrf"]
    sent = {"csrfmiddlewaretoken": mark, "username": "local", "password": "nothing"}
    answer = web.pages.post("/login/", data=sent, headers={"Referer": str(web.pages.base_url)})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    for answer in (
        web.api.get("/runs/"),
        web.api.post("/runs/", json=RUN),
        web.api.get(f"{web.pages.base_url}/metrics"),
    ):
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["code"] == "database_away"
    assert web.get("/api/v1/health").status_code == 200
    assert (web.ready().status_code, web.ready().json()["fields"].keys()) == (503, {"database"})
    assert web.get("/static/shell/base.css").status_code == 200


def test_the_very_next_request_works_once_it_is_back(web: Site, database: postgres.Server) -> None:
    at_once(web, "/runs/", n=N_AT_ONCE)
    kill(database)
    assert web.pages.get("/runs/").status_code == 503
    database.start()
    assert {answer.status_code for answer in at_once(web, "/runs/", n=N_AT_ONCE)} == {200}
    assert web.api.post("/runs/", json=RUN).status_code == 201


@pytest.mark.nightly
def test_a_restart_that_nobody_met_costs_no_request(web: Site, database: postgres.Server) -> None:
    """The server's threads then hold connections that ended behind their backs."""
    at_once(web, "/runs/", n=N_AT_ONCE)
    kill(database)
    database.start()
    assert {answer.status_code for answer in at_once(web, "/runs/", n=N_AT_ONCE)} == {200}


def test_a_frozen_database_is_said_within_seconds_and_costs_no_thread(web: Site, database: postgres.Server) -> None:
    """It takes connections and says nothing more, as a machine does whose disk hangs."""
    assert web.ready().json()["fields"].keys() == {"runner"}
    backends = family_of(main_process(database))
    began = time.monotonic()
    for process in backends:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            answers = list(pool.map(lambda _: web.ready(), range(2 * THREADS)))
        seconds = time.monotonic() - began
        assert {answer.status_code for answer in answers} == {503}
        assert [answer.json()["fields"] for answer in answers] == [
            {"database": f"It does not answer within {DATABASE_SECONDS:.0f} seconds."}
        ] * len(answers)
        assert seconds < 2 * DATABASE_SECONDS + 4, "each thread waited once, twice in a row"
        assert web.get("/api/v1/health").status_code == 200
    finally:
        for process in backends:
            os.kill(process.pid, signal.SIGCONT)
    wait_until(lambda: web.ready().json()["fields"].keys() == {"runner"})


def test_a_table_that_is_locked_is_said_within_seconds(web: Site, database: postgres.Server) -> None:
    with psycopg.connect(database.url(DATABASE)) as connection:
        connection.execute("LOCK TABLE django_migrations IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        assert web.ready().json()["fields"].keys() == {"database"}
        assert time.monotonic() - began < DATABASE_SECONDS + 4
    assert web.ready().json()["fields"].keys() == {"runner"}


@pytest.mark.nightly
def test_a_server_is_not_ready_until_the_database_is_migrated(
    database: postgres.Server, tmp_path: Path, nursery: Nursery
) -> None:
    """A new version started before its migrations gets no requests from a gateway that asks /ready."""
    with site(tmp_path, database.create_database("not_migrated"), nursery) as new:
        new.manage("migrate", "--no-input", "runs", "0001")
        new.serve()
        assert (new.ready().status_code, new.ready().json()["fields"].keys()) == (503, {"migrations"})
        assert new.get("/api/v1/health").status_code == 200
        new.manage("migrate", "--no-input")
        assert new.ready().json()["fields"].keys() == {"runner"}


@pytest.mark.nightly
def test_an_older_version_stays_ready_while_a_newer_one_migrates(web: Site, database: postgres.Server) -> None:
    """Migrations only add, until no older server is left: one that it does not know is no reason to stop."""
    with psycopg.connect(database.url(DATABASE)) as connection:
        connection.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('runs', '9999_newer', now())")
    assert web.ready().json()["fields"].keys() == {"runner"}
