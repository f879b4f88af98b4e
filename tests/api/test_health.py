"""Alive, and ready to take work."""

import pytest
from django.db import OperationalError, connection

from tests import build
from tests.api.conftest import Api


@pytest.mark.parametrize("path", ["/health", "/health/"])
def test_it_is_alive_without_a_database(path: str) -> None:
    answer = Api("evb_nonsense").get(path)
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


@pytest.mark.django_db
def test_it_is_ready_once_a_runner_was_seen() -> None:
    answer = Api().get("/ready")
    assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
    assert answer.json()["fields"].keys() == {"runner"}
    build.worker()
    assert (Api().get("/ready").status_code, Api().get("/ready").json()) == (200, {"status": "ready"})


@pytest.mark.django_db
def test_it_is_not_ready_while_migrations_are_missing() -> None:
    build.worker()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'runs'")
    assert Api().get("/ready").json()["fields"].keys() == {"migrations"}


@pytest.mark.django_db
def test_it_is_not_ready_while_the_database_is_away() -> None:
    def away(*_: object) -> None:
        raise OperationalError("the connection is closed")

    with connection.execute_wrapper(away):
        answer = Api().get("/ready")
    assert (answer.status_code, answer.json()["fields"].keys()) == (503, {"database"})
