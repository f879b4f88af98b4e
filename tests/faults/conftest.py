"""The workers of the fault tests: as in tests/worker, but each test harms only what is its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import RedisServer, free_lasting_port
from tests.worker.conftest import (
    join_worker,
    new_run,
    processes,
    scripted_python,
    setup,
    start_worker,
    wait_until,
    work_until,
    workers_here,
)

__all__ = [
    "join_worker",
    "new_run",
    "processes",
    "scripted_python",
    "setup",
    "start_worker",
    "wait_until",
    "work_until",
    "workers_here",
]


@pytest.fixture(scope="session")
def redis_port() -> int:
    """One for all: workers of one environment come out of one seedling (tests/nursery.py), and an address is in it."""
    return free_lasting_port()


@pytest.fixture
def redis(tmp_path: Path, redis_port: int) -> Iterator[RedisServer]:
    """A Redis that the test may kill, stop and fill."""
    if not RedisServer.is_installed():
        pytest.skip("No redis-server on PATH; Debian has it as the package `redis-server`.")
    server = RedisServer(tmp_path, port=redis_port)
    server.start()
    yield server
    server.stop()
