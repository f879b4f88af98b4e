"""The files of a log as they were uploaded."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from runs.importers import heads


@dataclass(frozen=True)
class LogFile:
    """One uploaded file: the name that its sender gave, which is never used as a path, and where it lies for now.

    Its beginning is read and parsed once, however many formats look at it.
    """

    name: str
    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    @cached_property
    def sha256(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def start(self) -> str:
        """The first characters, without the white space before them."""
        return heads.start(self.head(heads.HEAD_BYTES))

    @cached_property
    def first_object(self) -> dict[str, Any]:
        """The first JSON object in it, as far as its beginning holds it; {} where it does not begin with one."""
        return heads.first_object(self.start)

    def head(self, n: int = 4096) -> bytes:
        """The first bytes, by which a format is recognised."""
        with self.path.open("rb") as file:
            return file.read(n)
