"""Two traces as steps that are read side by side: which positions stand next to which, past the flip too."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare import Alignment, align, align_by_bytes, measure_drift
from evalboard.core.trace import Trace, Vocabulary

Places = NDArray[np.intp]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Span:
    """One step. `key` counts along the baseline, beyond its end too, and is what `?at=` takes.

    baseline, candidate: the positions that stand there. Where both sides have one vocabulary that is one at most;
    else a step ends at a position that agrees and holds what stands before it since the last one.
    """

    key: int
    baseline: range
    candidate: range


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """All n steps in order, as columns: a long answer has more of them than a page can take one by one.

    keys: intp[n], ascending. ends: intp[n, 2], the position behind each step on the baseline and on the candidate;
    a step begins where the one before it ends. gaps: float64[n] in nats, NaN where the sides do not agree or it is not
    known. parts: the step from which the sides differ, None where they never do.
    """

    keys: Places
    ends: Places
    gaps: Numbers
    parts: int | None

    def __len__(self) -> int:
        return len(self.keys)

    def span(self, place: int) -> Span:
        start, start_too = self.ends[place - 1].tolist() if place else (0, 0)
        end, end_too = self.ends[place].tolist()
        return Span(int(self.keys[place]), range(start, end), range(start_too, end_too))

    def find(self, key: int) -> int:
        """Return the place of the step with this key, or the nearest one before it; 0 where there is none."""
        place = int(np.searchsorted(self.keys, key, side="right")) - 1
        return min(max(place, 0), max(len(self) - 1, 0))

    def lasts(self, side: int) -> Places:
        """Return intp[n]: the last position of each step on the baseline (0) or candidate (1), −1 where it has none."""
        ends = self.ends[:, side]
        is_there = np.diff(ends, prepend=0) > 0
        return np.where(is_there, ends - 1, -1)


NO_STEPS = Steps(np.empty(0, np.intp), np.empty((0, 2), np.intp), np.empty(0), None)


def lay_out(baseline: Trace, candidate: Trace, *, vocabularies: tuple[Vocabulary, Vocabulary] | None = None) -> Steps:
    """Lay two traces side by side, step by step."""
    side_by_side = align_by_bytes(baseline, candidate, *vocabularies) if vocabularies else align(baseline, candidate)
    gaps: Numbers = measure_drift(side_by_side).gaps.astype(np.float64)
    ends = len(baseline), len(candidate)
    reach = side_by_side.parts_at or ends
    shared = _shared(side_by_side, reach)
    past = _past(reach, ends)
    keys, places = (np.concatenate(parts) for parts in zip(shared, past, strict=True))
    unknown = np.full(len(keys) - len(gaps), np.nan)
    known = np.where(np.isfinite(gaps), gaps, np.nan)
    return Steps(keys, places, np.concatenate([known, unknown]), len(shared[0]) if len(past[0]) else None)


def _shared(sides: Alignment, reach: tuple[int, int]) -> tuple[Places, Places]:
    """Return keys and ends of the steps before the sides part; each ends at a position that agrees."""
    keys: Any = np.asarray(sides.baseline_positions, np.intp)
    ends = np.column_stack([keys, sides.candidate_positions]).astype(np.intp) + 1
    last = ends[-1].tolist() if len(ends) else [0, 0]
    if last[0] < reach[0] or last[1] < reach[1]:  # other tokens for the same bytes, up to where the texts part
        keys, ends = np.append(keys, reach[0] - 1), np.vstack([ends, np.array(reach, np.intp)])
    return keys, ends


def _past(reach: tuple[int, int], ends: tuple[int, int]) -> tuple[Places, Places]:
    """Return those from the parting on: the first of the one beside the first of the other, and so on."""
    numbers = np.arange(max(ends[0] - reach[0], ends[1] - reach[1]), dtype=np.intp)
    sides = [np.minimum(reach[side] + numbers + 1, ends[side]) for side in (0, 1)]
    return reach[0] + numbers, np.column_stack(sides).astype(np.intp)
