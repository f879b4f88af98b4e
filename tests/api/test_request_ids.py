"""One id for each request: in the answer, in every problem, in the log, and with a ring to the worker."""

import logging
import re
from typing import Any

import pytest
from django.test import Client

from evalboard import request_ids
from runs.work import dispatch
from tests.api.conftest import Api
from worker import tasks, team

MADE = re.compile(r"[0-9a-f]{16}")


@pytest.fixture(autouse=True)
def no_request() -> None:
    """This thread may have served another test's."""
    request_ids.current.set(request_ids.NO_REQUEST)


def test_every_answer_has_one_of_its_own(api: Api) -> None:
    answers = [api.get("/runs/"), api.get("/runs/999/"), api.get("/nothing/"), api.get("/health")]
    ids = [answer["X-Request-ID"] for answer in answers]
    assert all(MADE.fullmatch(found) for found in ids)
    assert len(set(ids)) == len(ids)
    assert [answer.json()["request_id"] for answer in answers[1:3]] == ids[1:3]


@pytest.mark.django_db
@pytest.mark.parametrize("asked", ["abc", "4bf92f3577b34da6a3ce929d0e0e4736", "build-7_2.retry", "a" * 64])
def test_a_gateways_own_is_kept(asked: str) -> None:
    assert Client().get("/api/v1/runs/", headers={"X-Request-ID": asked}).json()["request_id"] == asked


@pytest.mark.django_db
@pytest.mark.parametrize(
    "asked", ["", "a" * 65, "a b", "-a", "é", 'a"b', "a\tb", "evil[1;31m", "a]\x1b", "../../etc", "a,b"]
)
def test_what_cannot_stand_in_a_log_line_is_not(asked: str) -> None:
    assert MADE.fullmatch(Client().get("/api/v1/runs/", headers={"X-Request-ID": asked})["X-Request-ID"])


def test_a_log_line_names_its_request(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(request_ids.RequestIdFilter())
    with request_ids.about("the-one"):
        logging.getLogger("test").warning("within")
    logging.getLogger("test").warning("after")
    assert [record.request_id for record in caplog.records] == ["the-one", "-"]


class Heard:
    """A runner that notes what its log lines are about."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def work(self) -> None:
        self.ids.append(request_ids.current.get())


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    runner = Heard()
    monkeypatch.setattr(team, "_joined", runner)
    return runner


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ({"v": 1, "request_id": "abc"}, "abc"),
        ({"v": 1}, "-"),  # of an older server
        ({"v": 1, "request_id": "a b\x1b"}, "-"),
        ({"v": 1, "request_id": 7}, "-"),
    ],
)
def test_a_worker_names_the_request_that_rang(heard: Heard, message: dict[str, Any], named: str) -> None:
    tasks.claim(**message)
    assert heard.ids == [named]
    assert request_ids.current.get() == "-"


def test_a_ring_carries_the_request(session_redis: Any, settings: Any) -> None:
    """Through Redis, as a worker would receive it."""
    from evalboard.celery import app

    settings.REDIS_URL = session_redis.url
    with request_ids.about("rang-it"):
        assert dispatch.ring("of-request-ids", n_shards=1) == 1
    with app.connection_for_read(url=session_redis.url) as wire:
        message = wire.default_channel.basic_get(dispatch.queue_of("of-request-ids"), no_ack=True)
    assert message.payload[1] == {"v": 1, "request_id": "rang-it"}
