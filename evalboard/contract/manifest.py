"""What is read from environment manifests: how two of them differ, and the seats of an engine process."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MovedField:
    """A field that differs; a value that its side does not know is None."""

    field: str
    baseline: Any
    candidate: Any


@dataclass(frozen=True, slots=True)
class ManifestDifference:
    """Two manifests compared by field: differing, equal, and unknown on both sides."""

    moved: tuple[MovedField, ...]
    equal: tuple[tuple[str, Any], ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EngineSeats:
    """How many seats the profile requested, and how many fit into memory, each of `length` tokens."""

    wanted: int
    got: int
    length: int
