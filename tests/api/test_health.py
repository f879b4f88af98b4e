"""Alive, and ready to take work."""

import pytest
from django.conf import LazySettings
from django.db import OperationalError, connection

from runs.health import read
from runs.store import outage
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
    assert (Api().get("/ready").status_code, Api().get("/ready").json()) == (200, {"status": "ready", "warnings": []})


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


@pytest.mark.django_db
def test_it_is_not_ready_while_the_data_folder_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    build.worker()
    monkeypatch.setattr(read, "MIN_FREE_BYTES", 2**60)
    fields = Api().get("/ready").json()["fields"]
    assert fields.keys() == {"disk"}
    assert "MiB free" in fields["disk"]


@pytest.mark.django_db
def test_room_is_looked_for_where_the_data_folder_would_be_made(settings: LazySettings) -> None:
    settings.DATA_DIR = settings.DATA_DIR / "not" / "made" / "yet"
    assert read.free_bytes() > 0


@pytest.mark.django_db
def test_it_is_not_ready_for_a_minute_after_the_database_said_that_its_disk_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build.worker()
    monkeypatch.setattr(outage, "_disk_was_full_at", outage.time.monotonic() - 30)
    assert Api().get("/ready").json()["fields"].keys() == {"disk"}
    monkeypatch.setattr(outage, "_disk_was_full_at", outage.time.monotonic() - 61)
    assert Api().get("/ready").status_code == 200


@pytest.mark.django_db
def test_it_stays_ready_without_its_doorbell_and_says_so(settings: LazySettings) -> None:
    build.worker()
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = Api().get("/ready")
    assert answer.status_code == 200
    [warning] = answer.json()["warnings"]
    assert warning["code"] == "queue_delayed"
    assert "Nothing is lost" in warning["text"]
