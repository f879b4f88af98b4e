"""Requests a minute, by caller and scope: refused beyond, counted by all servers of a team, let pass without Redis."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.cache import caches

from evalboard import settings as product
from runs.store import counters
from tests import build
from tests.api.conftest import SCOPES, Api
from tests.servers import RedisServer, Wire

pytestmark = pytest.mark.django_db
NOON = "2026-11-21T12:00:10Z"


@pytest.fixture(autouse=True)
def few(settings: Any) -> Iterator[None]:
    """Three reads and two runs a minute, in a minute that does not end."""
    settings.RATES = {"read": 3, "run": 2, "sign": 2, "admin": 0}
    counters._silent_until = float("-inf")
    caches[counters.ALIAS].clear()
    with time_machine.travel(NOON, tick=False):
        yield


def statuses(api: Api, n: int, path: str = "/suites/") -> list[int]:
    return [api.get(path).status_code for _ in range(n)]


def test_one_caller_too_many_is_refused_in_the_one_shape(api: Api) -> None:
    assert statuses(api, 3) == [200, 200, 200]
    refused = api.get("/suites/")
    body = refused.json()
    assert (refused.status_code, refused["Content-Type"]) == (429, "application/problem+json")
    assert (body["code"], body["status"], body["request_id"]) == ("too_many_requests", 429, refused["X-Request-Id"])
    assert refused["Retry-After"] == "50"


def test_the_next_minute_begins_anew(api: Api) -> None:
    statuses(api, 4)
    with time_machine.travel("2026-11-21T12:01:00Z", tick=False):
        assert api.get("/suites/").status_code == 200


def test_each_token_and_each_scope_has_its_own_number(api: Api) -> None:
    assert statuses(api, 4)[-1] == 429
    assert [api.post("/runs/", {}).status_code for _ in range(3)] == [400, 400, 429]
    other = Api(build.token(build.user("ada"), *SCOPES))
    assert other.get("/suites/").status_code == 200


def test_what_needs_no_login_and_what_has_no_limit_is_not_counted(api: Api) -> None:
    assert statuses(api, 5, "/health") == [200] * 5
    assert [api.delete("/runs/999/").status_code for _ in range(5)] == [404] * 5


def test_a_stranger_is_a_stranger_however_often(as_role: Any) -> None:
    assert statuses(as_role("anonymous"), 5) == [401] * 5


@pytest.fixture
def redis(tmp_path: Path, settings: Any) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path)
    server.start()
    settings.CACHES = {**settings.CACHES, "counters": product.counters_in(server.url)}
    yield server
    server.stop()


def test_servers_of_a_team_count_together(api: Api, redis: RedisServer) -> None:
    """Another server's count is the same key in Redis, a plain number that is forgotten soon."""
    assert statuses(api, 2) == [200, 200]
    [key] = [line for line in redis.command("KEYS", "*calls*").splitlines() if "calls" in line]
    assert redis.command("INCR", key).startswith(":3")
    assert 0 < int(redis.command("TTL", key).strip().lstrip(":")) <= 120
    assert api.get("/suites/").status_code == 429


def test_without_redis_everything_is_let_pass_and_nobody_waits(
    api: Api, redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    statuses(api, 4)
    redis.kill()
    assert statuses(api, 5) == [200] * 5
    assert [record.message for record in caplog.records if "not counted" in record.message][1:] == []


def test_a_redis_that_says_nothing_is_waited_for_once(api: Api, redis: RedisServer, settings: Any) -> None:
    """A wire on which nobody answers, as in a partitioned network: half a second, and then no more for a while."""
    wire = Wire("127.0.0.1", redis.port)
    settings.CACHES = {**settings.CACHES, "counters": product.counters_in(f"redis://127.0.0.1:{wire.port}/0")}
    assert statuses(api, 1) == [200]
    wire.cut()
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        assert statuses(api, 1) == [200]
        seconds.append(time.perf_counter() - began)
    wire.close()
    assert seconds[0] > 0.4
    assert min(seconds[1:]) < 0.4  # on a busy machine a request may take long, and yet it does not wait


def test_when_redis_is_back_it_counts_again(api: Api, redis: RedisServer) -> None:
    redis.kill()
    assert statuses(api, 4) == [200] * 4
    redis.start()
    counters._silent_until = float("-inf")  # the pause is over
    assert statuses(api, 4) == [200, 200, 200, 429]
