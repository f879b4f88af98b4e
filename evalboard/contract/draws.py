"""What the repeats of a run are: draws, where decoding samples."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Draws:
    """How the repeats of a run were sampled.

    temperature: in effect; None if it is not known: it is not in the log, or a server refused or dropped it.
    seed: the run's, from which every call's follows; None where it does not. is_one: repeats of a case share a seed, so
    that all of them are one draw. repeats: their indexes. is_external: an external server answered, whose seeds are
    shorter than those of our own engine.
    """

    temperature: float | None = 0.0
    seed: int | None = None
    is_one: bool = False
    repeats: tuple[int, ...] = ()
    is_external: bool = False

    @property
    def is_sampled(self) -> bool:
        return self.temperature is not None and self.temperature > 0

    @property
    def may_sample(self) -> bool:
        """Return whether repeats count as samples: the temperature is above 0, or not known."""
        return self.temperature is None or self.is_sampled

    @property
    def has_call_seeds(self) -> bool:
        """Return whether each call was sent its own seed, derived from the run's."""
        return self.seed is not None and (self.is_external or self.is_sampled)

    @property
    def words(self) -> str:
        """Describe it: "sampled, T = 0.7, seed 42", or "temperature not known"; "" if not sampled."""
        if self.temperature is None:
            return "temperature not known"
        if not self.is_sampled:
            return ""
        if self.is_one:
            return f"sampled, T = {self.temperature:g}, one draw"
        return f"sampled, T = {self.temperature:g}" + ("" if self.seed is None else f", seed {self.seed}")
