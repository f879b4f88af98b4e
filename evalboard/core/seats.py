"""Seats: how many sequences an engine process decodes at a time, decided once, when it starts (docs/profiles.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Seats:
    """How many the profile asked for, and how many the node's memory had room for, each of `length` tokens."""

    asked: int
    got: int
    length: int

    @property
    def words(self) -> str:
        """Say both in one sentence: "64 seats asked, 9 got: …"."""
        said = f"{self.asked} seat{'' if self.asked == 1 else 's'} asked, {self.got} got"
        if self.got == self.asked:
            return f"{said}."
        return f"{said}: after the weights, memory has room for {self.got} of {self.length:,} tokens at a time."


def of(manifest: Mapping[str, Any]) -> Seats | None:
    """Read the seats of the process that a manifest speaks of.

    None where vLLM shares its steps as it likes (`mixed`), and where no process or an earlier Evalboard reported.
    """
    engine = manifest.get("engine", {})
    if engine.get("seats") is None:
        return None
    return Seats(engine["max_num_seqs"], engine["seats"], engine["max_model_len"])
