"""The workers of the fault tests: as in tests/worker, but each test harms only what is its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import RedisServer
from tests.worker.conftest import new_run, processes, setup, start_worker, wait_until

__all__ = ["new_run", "processes", "setup", "start_worker", "wait_until"]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that the test may kill, stop and fill."""
    if not RedisServer.is_installed():
        pytest.skip("No redis-server on PATH; Debian has it as the package `redis-server`.")
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.stop()
