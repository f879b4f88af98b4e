"""Requests are counted over all processes of a server, also those that have died."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.site import Site, site
from tests.waiting import wait_until

N_REQUESTS = 40
COUNT = re.compile(
    r'^evalboard_http_request_seconds_count\{method="GET",route="/api/v1/suites/",status="200"\} (\S+)$', re.M
)


@pytest.fixture
def web(database_url: str, tmp_path: Path) -> Iterator[Site]:
    shared = tmp_path / "metrics"
    shared.mkdir()
    with site(tmp_path, database_url, PROMETHEUS_MULTIPROC_DIR=str(shared)) as found:
        found.start(workers=2)
        yield found


def counted(web: Site) -> float:
    answer = web.pages.get("/metrics")
    assert answer.status_code == 200
    found = COUNT.search(answer.text)
    return float(found[1]) if found else 0


@pytest.mark.nightly
def test_every_process_gives_the_count_of_all(web: Site) -> None:
    # A new connection each time: one that is kept stays with its process.
    secret = web.api.headers["Authorization"]
    for _ in range(N_REQUESTS):
        assert web.get("/api/v1/suites/", Authorization=secret).status_code == 200
    assert {counted(web) for _ in range(10)} == {N_REQUESTS}

    [first, *_] = web.processes()
    first.kill()
    wait_until(lambda: first not in web.processes() and len(web.processes()) == 2)
    wait_until(web.is_alive)
    assert {counted(web) for _ in range(10)} == {N_REQUESTS}
