"""Logs for the readers: real ones that lie beside this checkout, and ones that a test writes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runs.importers.files import LogFile

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "samples"


@pytest.fixture
def real() -> Callable[[str], LogFile]:
    """Return a real log by its path among the samples; without them the test is skipped."""

    def find(path: str) -> LogFile:
        if not SAMPLES.exists():
            pytest.skip("The real logs are not beside this checkout.")
        return LogFile(Path(path).name, SAMPLES / path)

    return find


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, bytes], LogFile]:
    """Write a log; a name with `/` in it stays a name."""

    def write(name: str, content: bytes) -> LogFile:
        path = tmp_path / name.replace("/", "_")
        path.write_bytes(content)
        return LogFile(name, path)

    return write
