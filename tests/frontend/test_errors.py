"""Error pages: what an outage looks like, wherever in the request it is met."""

from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from psycopg import errors

from runs.store import outage

pytestmark = pytest.mark.django_db


def failing(error: Exception, *, at: str) -> Any:
    """Let every statement that holds `at` fail."""

    def execute_or_fail(execute: Any, sql: str, *rest: Any) -> Any:
        if at in sql:
            raise error
        return execute(sql, *rest)

    return connection.execute_wrapper(execute_or_fail)


@pytest.fixture
def disk_full(monkeypatch: pytest.MonkeyPatch) -> OperationalError:
    monkeypatch.setattr(outage, "_disk_was_full_at", float("-inf"))  # and back to it after the test
    error = OperationalError("could not extend file")
    error.__cause__ = errors.DiskFull()
    return error


@pytest.mark.parametrize(
    ("at", "path"),
    [
        pytest.param("runs_worker", "/workers/", id="in the view"),
        pytest.param("django_session", "/workers/", id="in the session"),
        pytest.param("auth_group", "/workers/", id="in the roles"),
        pytest.param("", "/", id="everywhere"),
    ],
)
def test_a_database_that_is_away_asks_to_come_back(viewer: Client, at: str, path: str) -> None:
    with failing(OperationalError("the connection is closed"), at=at):
        answer = viewer.get(path)
    assert (answer.status_code, answer["Retry-After"], answer["Cache-Control"]) == (503, "5", "no-store")
    page = answer.content.decode()
    for words in ("The database does not answer.", "go on where they were", "Try again in a moment.", "database_away"):
        assert words in page
    assert answer["X-Request-Id"] in page
    assert "the connection is closed" not in page


def test_an_error_page_that_cannot_ask_who_looks_is_an_outage_too(viewer: Client) -> None:
    """No view runs here: the page for an unknown address asks for the session, outside of every middleware."""
    with failing(OperationalError("the connection is closed"), at="django_session"):
        answer = viewer.get("/nothing/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "database_away" in answer.content.decode()


def test_a_full_disk_says_that_nothing_was_stored(viewer: Client, disk_full: OperationalError) -> None:
    with failing(disk_full, at="runs_worker"):
        answer = viewer.get("/workers/")
    assert answer.status_code == 507
    assert "Retry-After" not in answer
    page = answer.content.decode()
    for words in ("disk is full", "nothing of what you sent was stored", "free space on that disk", "disk_full"):
        assert words in page
    assert outage.was_disk_full_lately()


def test_an_address_of_the_api_answers_in_its_own_shape(viewer: Client) -> None:
    with failing(OperationalError("the connection is closed"), at="django_session"):
        answer = viewer.get("/api/v1/runs/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert (answer["Content-Type"], answer.json()["code"]) == ("application/problem+json", "database_away")
    assert "Try again" in answer.json()["detail"]


def test_what_is_no_outage_stays_an_error_of_ours(viewer: Client) -> None:
    with failing(RuntimeError("the secret cause"), at="runs_worker"):
        answer = viewer.get("/workers/")
    assert (answer.status_code, "secret" in answer.content.decode()) == (500, False)
    assert "server_error" in answer.content.decode()
