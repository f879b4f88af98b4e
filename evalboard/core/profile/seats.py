"""Seats: how many sequences an engine process decodes at a time, decided once, when it starts (docs/profiles.md)."""

from collections.abc import Mapping
from typing import Any

from evalboard.contract.manifest import EngineSeats


def read_seats(manifest: Mapping[str, Any]) -> EngineSeats | None:
    """Read the seats of the process that a manifest speaks of.

    None where vLLM shares its steps as it likes (`mixed`), and where no process or an earlier Evalboard reported.
    """
    engine = manifest.get("engine", {})
    if engine.get("seats") is None:
        return None
    return EngineSeats(engine["max_num_seqs"], engine["seats"], engine["max_model_len"])
