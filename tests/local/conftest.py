"""Folders of a user's machine, which hold a Unix socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import short_folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Make a folder whose path leaves room for a socket's name, also where TMPDIR is long."""
    with short_folder() as folder:
        yield folder
