"""The files of a log as they were uploaded."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class LogFile:
    """One uploaded file: the name that its sender gave, which is never used as a path, and where it lies for now."""

    name: str
    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    @cached_property
    def sha256(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def head(self, n: int = 4096) -> bytes:
        """The first bytes, by which a format is recognised."""
        with self.path.open("rb") as file:
            return file.read(n)
