"""A session for test_killed_session.py to kill: everything that tests start, at work. Collected only by its name."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from runs.models import RunRecord
from tests.faults.site import site
from tests.servers import RedisServer
from tests.worker.conftest import Start, Wait, engines

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def setup(redis: RedisServer) -> dict[str, str]:
    return {"REDIS_URL": redis.url}


def test_everything_is_at_work(
    browser: Browser,
    database_url: str,
    new_run: Callable[..., RunRecord],
    start_worker: Start,
    wait_until: Wait,
    tmp_path: Path,
) -> None:
    browser.new_page()
    new_run(["hang"])
    start_worker("--scheduler")
    working = start_worker(EVALBOARD_RESPONSE_SECONDS="3600")
    with site(tmp_path, database_url) as web:
        web.serve()
        wait_until(lambda: engines(working), "the engine has started")
        Path(os.environ["KILLED_SESSION_IS_READY"]).touch()
        time.sleep(3600)
