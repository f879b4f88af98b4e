"""What a step of a bisect gave for the chosen cases."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.contract.lab_kinds import StepAnswer
from evalboard.core import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFigures:
    """One step, case by case in the plan's order.

    shown: which side's answer came, up to where the two part. scores: under the baseline's scorer, from 0 to 1, None
    where missing. n_beside, n_beside_moved: of the cases beside them, which did not differ between the two runs, how
    many came, and how many of these with another text. seconds: of engines, without their starts.
    """

    shown: tuple[StepAnswer, ...]
    scores: tuple[float | None, ...]
    n_beside: int = 0
    n_beside_moved: int = 0
    n_tokens: int = 0
    seconds: float = 0.0
    n_starts: int = 0

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "StepFigures":
        """Return what `dataclasses.asdict` made, after it was JSON."""
        return cls(**{**stored, "shown": tuple(map(StepAnswer, stored["shown"])), "scores": tuple(stored["scores"])})


def digest_head(answer: Sequence[int] | str, at: int) -> str:
    """Return the digest of an answer up to and with position `at`, in tokens or characters.

    Of one that ends before it, it is that of the whole answer, which no longer one has.
    """
    return digest.digest_json(answer[: at + 1] if isinstance(answer, str) else [int(each) for each in answer[: at + 1]])


def find_parting(ours: Sequence[int] | str, theirs: Sequence[int] | str) -> int | None:
    """Return the first position, in tokens or characters, where two answers differ; None if equal."""
    for at, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return at
    return None if len(ours) == len(theirs) else min(len(ours), len(theirs))
