"""Logs for the readers: real ones, and ones that a test writes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evalboard.importers.files import LogFile
from tests.recorded import LOGS


@pytest.fixture
def real() -> Callable[[str], LogFile]:
    """Return a real log by its path among the recorded ones."""
    return lambda path: LogFile(Path(path).name, LOGS / path)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, bytes], LogFile]:
    """Write a log; a name with `/` in it stays a name."""

    def write(name: str, content: bytes) -> LogFile:
        path = tmp_path / name.replace("/", "_")
        path.write_bytes(content)
        return LogFile(name, path)

    return write
