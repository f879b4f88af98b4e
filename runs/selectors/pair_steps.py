"""Two traces as steps that are read side by side: which positions stand next to which, past the flip too."""

import bisect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core import drift
from evalboard.core.alignment import Alignment, align, align_by_bytes
from evalboard.core.trace import Trace
from evalboard.core.vocabulary import Vocabulary

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Span:
    """One step. `key` counts along the baseline, beyond its end too, and is what `?at=` takes.

    baseline, candidate: the positions that stand there. Where both sides have one vocabulary that is one at most;
    else a step ends at a position that agrees and holds what stands before it since the last one.
    gap: in nats, None where the sides do not agree or it is not known.
    """

    key: int
    baseline: range
    candidate: range
    gap: float | None = None


@dataclass(frozen=True, slots=True)
class Steps:
    """All steps in order. `parts` is the step from which the sides differ, None where they never do."""

    spans: tuple[Span, ...]
    parts: int | None

    def find(self, key: int) -> int:
        """The step with this key, or the nearest one before it; 0 where there is none."""
        found = bisect.bisect_right([span.key for span in self.spans], key) - 1
        return min(max(found, 0), max(len(self.spans) - 1, 0))


def lay_out(baseline: Trace, candidate: Trace, *, vocabularies: tuple[Vocabulary, Vocabulary] | None = None) -> Steps:
    """Lay two traces side by side, step by step."""
    side_by_side = align_by_bytes(baseline, candidate, *vocabularies) if vocabularies else align(baseline, candidate)
    gaps = drift.measure(side_by_side).gaps
    ends = len(baseline), len(candidate)
    reach = side_by_side.parts_at or ends
    shared = list(_shared(side_by_side, gaps, reach))
    past = list(_past(reach, ends))
    return Steps((*shared, *past), len(shared) if past else None)


def _shared(sides: Alignment, gaps: Numbers, reach: tuple[int, int]) -> Iterator[Span]:
    """The steps before the sides part; each ends at a position that agrees."""
    start, start_too = 0, 0
    known: Sequence[float | None] = [gap if np.isfinite(gap) else None for gap in gaps.tolist()]
    ends = zip(sides.baseline_positions.tolist(), sides.candidate_positions.tolist(), known, strict=True)
    for end, end_too, gap in ends:
        yield Span(end, range(start, end + 1), range(start_too, end_too + 1), gap)
        start, start_too = end + 1, end_too + 1
    if start < reach[0]:  # other tokens for the same bytes, up to where the texts part
        yield Span(reach[0] - 1, range(start, reach[0]), range(start_too, reach[1]))
    elif start_too < reach[1]:
        yield Span(reach[0] - 1, range(0), range(start_too, reach[1]))


def _past(reach: tuple[int, int], ends: tuple[int, int]) -> Iterator[Span]:
    """From the parting on: the first of the one beside the first of the other, and so on."""
    rest, rest_too = range(reach[0], ends[0]), range(reach[1], ends[1])
    for number, (here, there) in enumerate(itertools.zip_longest(rest, rest_too)):
        yield Span(reach[0] + number, _one(here), _one(there))


def _one(position: int | None) -> range:
    return range(0) if position is None else range(position, position + 1)
