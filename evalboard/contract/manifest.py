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
    """Two manifests field by field: what moved, what both know to be the same, and what neither knows."""

    moved: tuple[MovedField, ...]
    equal: tuple[tuple[str, Any], ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EngineSeats:
    """How many the profile asked for, and how many the node's memory had room for, each of `length` tokens."""

    wanted: int
    got: int
    length: int
