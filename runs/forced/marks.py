"""The tokens of a forced trace that its stack would not have chosen."""

from dataclasses import dataclass

import numpy as np

from evalboard.compared.tokens import draw
from evalboard.core.trace import TokenTrace, Vocabulary
from runs.forced.figures import deficits


@dataclass(frozen=True, slots=True)
class ForcedMark:
    """A token that is not the other stack's top choice. first_choice: that choice, "" if unknown."""

    position: int
    first_choice: str


def list_marks(trace: TokenTrace, words: Vocabulary | None) -> tuple[ForcedMark, ...]:
    """List them in their order. words: of the stack that scored them."""
    positions = np.flatnonzero(deficits(trace) > 0)
    ranks = np.nanargmax(trace.alternative_logprobs[positions], axis=1) if len(positions) else []
    first_choices = trace.alternative_ids[positions, ranks].tolist() if len(positions) else []
    return tuple(
        ForcedMark(position, drawn)
        for position, drawn in zip(positions.tolist(), draw(first_choices, words), strict=True)
    )
