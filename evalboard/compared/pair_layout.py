"""Lay out two answers for the trace diff: steps, margins, gaps, and prompt differences."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from evalboard.compared.tokens import draw, token_at, tokens_at
from evalboard.contract import pair as contract
from evalboard.contract.base import finite
from evalboard.contract.trace import TokenAtPosition
from evalboard.core.compare import Alignment, Divergence, align, align_by_bytes, measure_drift
from evalboard.core.trace import TokenTrace, Vocabulary, lowest_of_stretches

WINDOW = (150, 150)  # positions that a page shows before the selected one, and after it

Places = NDArray[np.intp]
Numbers = NDArray[np.float64]


class TracedHalf(Protocol):
    """One side. trace: None without one; words: None if the vocabulary is unknown."""

    @property
    def trace(self) -> TokenTrace | None: ...
    @property
    def words(self) -> Vocabulary | None: ...


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
        """Return intp[n]: the last position of each step on a side (0: baseline), −1 if it has none."""
        ends = self.ends[:, side]
        is_there = np.diff(ends, prepend=0) > 0
        return np.where(is_there, ends - 1, -1)


NO_STEPS = Steps(np.empty(0, np.intp), np.empty((0, 2), np.intp), np.empty(0), None)


def lay_out(
    baseline: TokenTrace, candidate: TokenTrace, *, vocabularies: tuple[Vocabulary, Vocabulary] | None = None
) -> Steps:
    """Lay two traces side by side, step by step."""
    side_by_side = align_by_bytes(baseline, candidate, *vocabularies) if vocabularies else align(baseline, candidate)
    gaps: Numbers = measure_drift(side_by_side).gaps.astype(np.float64)
    ends = len(baseline), len(candidate)
    reach = side_by_side.parts_at or ends
    shared = _shared(side_by_side, reach)
    past = _remaining_pairs(reach, ends)
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


def _remaining_pairs(reach: tuple[int, int], ends: tuple[int, int]) -> tuple[Places, Places]:
    """Return the steps after the divergence, pairing positions one by one."""
    numbers = np.arange(max(ends[0] - reach[0], ends[1] - reach[1]), dtype=np.intp)
    sides = [np.minimum(reach[side] + numbers + 1, ends[side]) for side in (0, 1)]
    return reach[0] + numbers, np.column_stack(sides).astype(np.intp)


def show_pair(
    halves: tuple[TracedHalf, TracedHalf],
    parting: Divergence | None,
    *,
    vocabularies: tuple[Vocabulary, Vocabulary] | None,
    near: float | None,
    at: int | None = None,
    around: tuple[int, int] = WINDOW,
) -> dict[str, Any]:
    """Return the parts of a `TracePair` that depend on its traces, around position `at`.

    at: None for the flip, or what is nearest to one. parting: None if nothing diverges. vocabularies: if those of the
    two sides differ. near: the margin that noise explains, None if it is not known.
    """
    one, other = halves
    steps = NO_STEPS
    if one.trace is not None or other.trace is not None:
        steps = lay_out(trace_of(one), trace_of(other), vocabularies=vocabularies)
    numbers, onset = StepNumbers.of(halves, steps), parting.drift_onset if parting else None
    parts_at = None if steps.parts is None else int(steps.keys[steps.parts])
    selected = _select(steps, at, onset, parts_at, numbers)
    window = range(0)
    if selected is not None:
        window = range(max(selected - around[0], 0), min(selected + around[1] + 1, len(steps)))
    shown = None if selected is None else int(steps.keys[selected])
    marks = {*numbers.narrow_keys, *(mark for mark in (onset, parts_at) if mark is not None)}
    return {
        "n_positions": len(steps),
        "at": shown,
        "positions": _positions(halves, steps, window, selected),
        "parts_at": parts_at,
        "last_at": int(steps.keys[-1]) if len(steps) else 0,
        "earlier": max((mark for mark in marks if shown is None or mark < shown), default=None),
        "later": min((mark for mark in marks if shown is not None and mark > shown), default=None),
        "points": numbers.points(numbers.standing_for_all()),
        "n_points": len(numbers),
        "shown_points": numbers.points(window),
        "n_within_noise": numbers.n_within(near),
        "gap_range": numbers.gap_range(onset),
    }


def trace_of(half: TracedHalf) -> TokenTrace:
    """Return the side's trace, or an empty one."""
    if half.trace is not None:
        return half.trace
    ids, numbers = np.zeros(0, np.int32), np.zeros(0, np.float32)
    return TokenTrace(ids, numbers, ids.reshape(0, 0), numbers.reshape(0, 0))


def _select(
    steps: Steps, at: int | None, onset: int | None, parts_at: int | None, numbers: "StepNumbers"
) -> int | None:
    """Return the step at `at`, else the divergence, where drift starts, or the smallest margin."""
    if not len(steps):
        return None
    if at is not None and at <= steps.keys[-1]:
        return steps.find(at)
    if parts_at is not None or onset is not None:
        return steps.find(parts_at if parts_at is not None else onset or 0)
    return numbers.narrowest() or 0


def _positions(
    halves: tuple[TracedHalf, TracedHalf], steps: Steps, window: range, selected: int | None
) -> tuple[contract.PairPosition, ...]:
    """Return the positions of the window; only the selected one has its alternatives."""
    if selected is None:
        return ()
    shown, (one, other) = [steps.span(place) for place in window], halves
    tokens, tokens_too = _tokens(one, [span.baseline for span in shown]), _tokens(other, [s.candidate for s in shown])
    positions = [
        contract.PairPosition(at=span.key, baseline=here, candidate=there)
        for span, here, there in zip(shown, tokens, tokens_too, strict=True)
    ]
    span = steps.span(selected)
    positions[selected - window.start] = contract.PairPosition(
        at=span.key, baseline=_whole_tokens(one, span.baseline), candidate=_whole_tokens(other, span.candidate)
    )
    return tuple(positions)


def _tokens(half: TracedHalf, shown: list[range]) -> list[tuple[TokenAtPosition, ...]]:
    """Return the tokens of each step without their alternatives."""
    cells = iter(tokens_at(trace_of(half), [position for places in shown for position in places], half.words))
    return [tuple(next(cells) for _ in places) for places in shown]


def _whole_tokens(half: TracedHalf, positions: range) -> tuple[TokenAtPosition, ...]:
    trace = trace_of(half)
    margins = trace.margins()
    return tuple(token_at(trace, position, float(margins[position]), half.words) for position in positions)


CHART_POINTS = 400  # of a chart; of more steps, each stretch shows its narrowest margin and its widest gap
NARROW = 0.25  # nats; a margin below is a position of interest


@dataclass(frozen=True, slots=True, eq=False)
class StepNumbers:
    """The numbers of all n steps that agree, and of the flip; empty if a trace is missing.

    lasts: intp[n, 2], the last position of each step on both sides, −1 if there is none. margins: float64[n, 2] in
    nats, there; NaN if not known. Past the flip no number is compared.
    """

    halves: tuple[TracedHalf, TracedHalf]
    steps: Steps
    lasts: Places
    margins: Numbers

    @classmethod
    def of(cls, halves: tuple[TracedHalf, TracedHalf], steps: Steps) -> "StepNumbers":
        n = 0 if any(half.trace is None for half in halves) else len(steps) if steps.parts is None else steps.parts + 1
        lasts = np.column_stack([steps.lasts(side)[:n] for side in (0, 1)])
        margins = np.column_stack([_margins(half, lasts[:, side]) for side, half in enumerate(halves)])
        return cls(halves, steps, lasts, margins)

    def __len__(self) -> int:
        return len(self.lasts)

    @property
    def narrower(self) -> Numbers:
        """The smaller margin of both sides."""
        narrower: Numbers = np.fmin(self.margins[:, 0], self.margins[:, 1])
        return narrower

    @property
    def narrow_keys(self) -> list[int]:
        keys: list[int] = self.steps.keys[: len(self)][self.narrower < NARROW].tolist()
        return keys

    def n_within(self, near: float | None) -> int:
        """Count the steps before the parting whose margin noise explains."""
        n = len(self) if self.steps.parts is None else min(self.steps.parts, len(self))
        return 0 if near is None else int(np.count_nonzero(self.narrower[:n] <= near))

    def gap_range(self, onset: int | None) -> tuple[float, float] | None:
        """Return the smallest and largest gap above 0 from where drift starts; None without any."""
        if onset is None:
            return None
        gaps = self.steps.gaps[: len(self)]
        known = gaps[(self.steps.keys[: len(self)] >= onset) & (gaps > 0)]
        return (float(known.min()), float(known.max())) if len(known) else None

    def narrowest(self) -> int | None:
        """Return the step where the baseline's choice was closest."""
        places = lowest_of_stretches(self.margins[:, 0], 1)
        return int(places[0]) if len(places) else None

    def standing_for_all(self) -> list[int]:
        """Return every step, or of a long trace those that a chart shows for all; the parting is one of them."""
        if len(self) <= CHART_POINTS:
            return list(range(len(self)))
        most = CHART_POINTS // 2
        closest, widest = (lowest_of_stretches(each, most) for each in (self.narrower, -self.steps.gaps[: len(self)]))
        return sorted({*closest.tolist(), *widest.tolist(), len(self) - 1})

    def points(self, places: Iterable[int]) -> tuple[contract.MarginPoint, ...]:
        chosen = [place for place in places if place < len(self)]
        lasts, margins = self.lasts[chosen], self.margins[chosen].tolist()
        drawn = [_drawn_tokens(half, lasts[:, side].tolist()) for side, half in enumerate(self.halves)]
        keys, gaps = self.steps.keys[chosen].tolist(), self.steps.gaps[chosen].tolist()
        return tuple(
            contract.MarginPoint(
                at=key,
                tokens=(token, token_too),
                margins=(finite(margin), finite(margin_too)),
                gap=finite(gap),
            )
            for key, token, token_too, (margin, margin_too), gap in zip(keys, *drawn, margins, gaps, strict=True)
        )


def _margins(half: TracedHalf, lasts: Places) -> Numbers:
    if half.trace is None:
        return np.empty(0)
    padded = np.append(half.trace.margins().astype(np.float64), np.nan)  # for −1
    return padded[lasts]


def _drawn_tokens(half: TracedHalf, positions: list[int]) -> list[str]:
    """Return readable tokens, "" where the side has none. Each id is converted once."""
    if half.trace is None:
        return []
    there = [position for position in positions if position >= 0]
    ids = dict(zip(there, half.trace.token_ids[there].tolist(), strict=True))
    used = sorted(set(ids.values()))
    drawn = dict(zip(used, draw(used, half.words), strict=True))
    return ["" if position < 0 else drawn[ids[position]] for position in positions]


Side = Literal["both", "baseline", "candidate"]

MAX_COMPARED = 1500  # tokens of each side, between the ends that they share: beyond, matching takes seconds
CONTEXT = 12  # tokens shown on either side of a difference


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A piece of the prompts: ids that `side` has. n_left_out: ids of a shared piece not shown."""

    side: Side
    ids: tuple[int, ...]
    n_left_out: int = 0


def find_prompt_parts(baseline: Sequence[int], candidate: Sequence[int]) -> tuple[PromptPart, ...]:
    """Return the pieces in order, shared ones cut to the context of a difference; empty if equal."""
    if list(baseline) == list(candidate):
        return ()
    start = _common(baseline, candidate)
    end = _common(baseline[start:][::-1], candidate[start:][::-1])
    ours, theirs = list(baseline[start : len(baseline) - end]), list(candidate[start : len(candidate) - end])
    parts = [*_both(baseline[:start], is_first=True), *_differing(ours, theirs)]
    return (*parts, *_both(baseline[len(baseline) - end :], is_last=True))


def _differing(ours: list[int], theirs: list[int]) -> list[PromptPart]:
    if max(len(ours), len(theirs)) > MAX_COMPARED:
        return [*_only("baseline", ours), *_only("candidate", theirs)]
    parts: list[PromptPart] = []
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for what, start, end, start_too, end_too in matcher.get_opcodes():
        if what == "equal":
            parts += _both(ours[start:end])
        else:
            parts += [*_only("baseline", ours[start:end]), *_only("candidate", theirs[start_too:end_too])]
    return parts


def _both(ids: Sequence[int], *, is_first: bool = False, is_last: bool = False) -> list[PromptPart]:
    """A shared piece: the end of the first one, the beginning of the last one, both ends of one between."""
    before, after = (0 if is_first else CONTEXT), (0 if is_last else CONTEXT)
    if len(ids) <= before + after:
        return [PromptPart("both", tuple(ids))] if len(ids) else []
    head, tail = tuple(ids[:before]), tuple(ids[len(ids) - after :])
    parts = [PromptPart("both", head)] if head else []
    return [*parts, PromptPart("both", tail, len(ids) - before - after)]


def _only(side: Side, ids: Sequence[int]) -> list[PromptPart]:
    return [PromptPart(side, tuple(ids[:MAX_COMPARED]), max(len(ids) - MAX_COMPARED, 0))] if len(ids) else []


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many first tokens two prompts share."""
    n = min(len(one), len(other))
    return next((place for place in range(n) if one[place] != other[place]), n)
