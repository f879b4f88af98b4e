"""Seats: how many sequences an engine process decodes at a time, decided once, when it starts (docs/profiles.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Seats:
    """How many the profile asked for, and how many the node's memory had room for, each of `length` tokens."""

    wanted: int
    got: int
    length: int


def read_seats(manifest: Mapping[str, Any]) -> Seats | None:
    """Read the seats of the process that a manifest speaks of.

    None where vLLM shares its steps as it likes (`mixed`), and where no process or an earlier Evalboard reported.
    """
    engine = manifest.get("engine", {})
    if engine.get("seats") is None:
        return None
    return Seats(engine["max_num_seqs"], engine["seats"], engine["max_model_len"])
