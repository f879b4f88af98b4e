"""Find the source of a leak: tokens in a row that also occur in one text of the same batch only."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]

MIN_TOKENS = 8  # a shorter run occurs in answers to many cases
TIMES_OTHERS = 2  # so much longer than a run that also occurs elsewhere, like common phrases


@dataclass(frozen=True, slots=True)
class Beside:
    """A prompt or an answer decoded in the same batch. case: the index of its case."""

    case: int
    ids: Ids


@dataclass(frozen=True, slots=True)
class Continuation:
    """A match. place: of its source, in the given order; at: its first token; n: its length."""

    place: int
    at: int
    n: int


def find_continuation(rest: Ids, beside: Sequence[Beside], own: Sequence[Ids]) -> Continuation | None:
    """Find the text that an answer continues with; None if the match is short, or not unique.

    rest: int32[n], the answer's tokens from where it diverged. own: prompt and other answers of its own case, where its
    tokens are no leak.
    """
    runs = [_longest_run(rest, each.ids) for each in beside]
    if not runs:
        return None
    place = max(range(len(runs)), key=lambda at: runs[at][0])
    n, at = runs[place]
    others = [run[0] for run, each in zip(runs, beside, strict=True) if each.case != beside[place].case]
    elsewhere = max([*others, *(_longest_run(rest, ids)[0] for ids in own)], default=0)
    return Continuation(place, at, n) if n >= max(MIN_TOKENS, TIMES_OTHERS * elsewhere) else None


def _longest_run(rest: Ids, ids: Ids) -> tuple[int, int]:
    """Return how many first tokens of `rest` occur in a row in `ids`, and where."""
    starts = np.flatnonzero(ids == rest[0]) if len(rest) else np.zeros(0, np.intp)
    n, at = 0, 0
    while len(starts):
        n, at = n + 1, int(starts[0])
        starts = starts[starts + n < len(ids)] if n < len(rest) else starts[:0]
        starts = starts[ids[starts + n] == rest[n]] if len(starts) else starts
    return n, at
