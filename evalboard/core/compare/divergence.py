"""Find how two traces of one case diverge: drift, flip, and the numbers there.

Nothing after the flip is compared: from there the two sides read different texts, and their logprobs no longer answer
the same question. Logprobs are in nats. docs/divergence.md defines every number. Many pairs are measured at once, as
columns, and every number of a pair depends on its own rows only, in their order.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.compare import Flip
from evalboard.core.compare import drift
from evalboard.core.compare.alignment import NEVER, SIDES, Bools, Ids, Shorter, find_firsts
from evalboard.core.compare.drift import Drift, Numbers
from evalboard.core.compare.greedy import NOT_GREEDY, find_beaten
from evalboard.core.compare.listed import Listed, are_disjoint, are_top_two_equal, find_largest_gap, list_rows
from evalboard.core.compare.paired_rows import Indexes, PairedRows, Vocabularies, lay_pairs
from evalboard.core.trace import IMPOSSIBLE, TokenTrace, TraceColumns, join_traces

PART_CELLS = 1 << 17  # logprobs of both sides that are measured at once, so that they stay in the processor's cache
MAX_MOVEMENT = -IMPOSSIBLE  # a movement across a forbidden token has no number: it is at least this

Columns = dict[str, Sequence[Any]]
Kind = Literal["identical", "drift_only", "flipped", "text_only"]
Sides = tuple[TraceColumns, TraceColumns]


def _evidence(default: Any) -> Any:
    """Make a field that evidence has too, under its name."""
    return field(default=default, metadata={"is_evidence": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """How two traces diverge. Positions count from 0; None is "never" for them, "not known" for numbers.

    drift_onset, parts_at: positions on the baseline's side; `*_candidate` are the candidate's, which are the same
    unless the comparison is approximate. shorter: the side that ends where the other continues; else the tokens at
    `parts_at` differ, which is the flip. token_*, margin_*: of each side at the flip. gap_at_onset, gap_before_flip:
    the largest gap of the tokens that both sides list, where drift starts and at the last position that agrees.
    n_shared: positions that agree. n_usable: those of them with a known top-2 gap shift D; shift_rms: its root mean
    square; shift_max: the largest |D|, at the baseline's position shift_max_at. movement: by how much the logit
    difference of the two chosen tokens moved at the flip, which is the sum of the margins if `are_both_top` (each side
    chose its top-1); a lower bound unless `are_both_listed`. are_disjoint: at the flip no alternative of one side is
    among the other's. moved_by: the largest gaps of all positions up to the flip and at it, together; None if the flip
    has none. not_greedy_*: the first position, up to the divergence, where the chosen token was not top-1. start_*: of
    position 0. text_position: the first character that differs, for texts without tokens. is_retokenised: both sides
    spell one text by other tokens, so that nothing else of them is compared. is_constrained: up to the divergence a
    side of a log chose a token so far below another one that something forbade the other. is_masked: at the flip a side
    lists the other's token as impossible. lacks_alternatives: at the flip a side lists none.
    """

    drift_onset: int | None = _evidence(None)
    drift_onset_candidate: int | None = None
    parts_at: int | None = None
    parts_at_candidate: int | None = None
    shorter: Shorter | None = None
    n_baseline: int = 0
    n_candidate: int = 0
    token_baseline: int | None = None
    token_candidate: int | None = None
    margin_baseline: float | None = _evidence(None)
    margin_candidate: float | None = _evidence(None)
    gap_at_onset: float | None = _evidence(None)
    gap_before_flip: float | None = None
    n_shared: int = 0
    n_usable: int = _evidence(0)
    shift_rms: float | None = _evidence(None)
    shift_max: float | None = _evidence(None)
    shift_max_at: int | None = _evidence(None)
    are_top_two_equal: bool | None = None
    are_both_listed: bool = False
    are_both_top: bool = False
    are_disjoint: bool = False
    movement: float | None = _evidence(None)
    moved_by: float | None = None
    not_greedy_baseline: int | None = None
    not_greedy_candidate: int | None = None
    start_gap: float | None = None
    are_start_top_two_equal: bool | None = None
    has_logprobs: bool = False
    is_approximate: bool = _evidence(False)
    is_retokenised: bool = False
    is_constrained: bool = False
    is_masked: bool = False
    lacks_alternatives: bool = False
    text_position: int | None = None

    @property
    def flip_position(self) -> int | None:
        """The baseline's position of the first tokens that differ; None where one side merely ends."""
        return self.parts_at if self.shorter is None else None

    @property
    def kind(self) -> Kind:
        """Return what differs. A side that merely ends earlier diverges too, and counts as flipped."""
        if self.text_position is not None:
            return "text_only"
        if self.is_retokenised:
            return "identical"
        if self.parts_at is not None:
            return "flipped"
        return "identical" if self.drift_onset is None else "drift_only"


# What of it a cause by numbers rests on, as its evidence has it.
EVIDENCE = tuple(each.name for each in fields(Divergence) if each.metadata)
# What of it a flip keeps by the same names.
PARTED = tuple(each.name for each in fields(Flip) if hasattr(Divergence, each.name))
_parted = attrgetter(*PARTED)


def parted_columns(parting: Divergence | None) -> dict[str, Any]:
    """Return the fields of Flip that say how two traces part."""
    return {} if parting is None else dict(zip(PARTED, _parted(parting), strict=True))


def find_divergence(
    baseline: TokenTrace,
    candidate: TokenTrace,
    *,
    vocabularies: Vocabularies | None = None,
    is_decimal: bool = False,
) -> Divergence:
    """Find how two traces part.

    vocabularies: the baseline's and the candidate's where they are not the same one; then tokens are compared by
    their bytes. is_decimal: a log gave the logprobs as decimals, so their last bits mean nothing.
    """
    sides = join_traces([baseline]), join_traces([candidate])
    return find_divergences(*sides, vocabularies=[vocabularies], is_decimal=is_decimal)[0]


def find_divergences(
    baseline: TraceColumns,
    candidate: TraceColumns,
    *,
    vocabularies: Sequence[Vocabularies | None] | None = None,
    is_decimal: bool = False,
) -> list[Divergence]:
    """Find how each pair of traces diverges: trace i of each side, like `find_divergence`.

    A pair's numbers are the same to the bit whatever other pairs there are. vocabularies: one entry for each pair, or
    None if every pair has one vocabulary.
    """
    partings: list[Divergence] = []
    for first, last in _parts(baseline, candidate):
        own = baseline.cut(first, last), candidate.cut(first, last)
        laid = lay_pairs(*own, vocabularies and vocabularies[first:last])
        columns = _measure(laid, own, is_decimal=is_decimal)
        partings += [Divergence(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
    return partings


def find_text_divergence(baseline: str, candidate: str) -> Divergence:
    """Find how two texts part that came without tokens: the first character that differs, and no more."""
    if baseline == candidate:
        return Divergence()
    n = min(len(baseline), len(candidate))
    position = next((place for place in range(n) if baseline[place] != candidate[place]), n)
    shorter: Shorter = "baseline" if len(baseline) < len(candidate) else "candidate"
    return Divergence(text_position=position, shorter=shorter if position == n else None)


def _parts(*sides: TraceColumns) -> Iterator[tuple[int, int]]:
    """Yield stretches of the pairs, each of at most PART_CELLS logprobs, and of one pair at the least."""
    cells = sum(side.starts * (1 + side.alternative_ids.shape[1]) for side in sides)
    first = 0
    while first < len(sides[0]):
        last = max(int(np.searchsorted(cells, cells[first] + PART_CELLS, side="right")) - 1, first + 1)
        yield first, last
        first = last


def _measure(laid: PairedRows, own: Sides, *, is_decimal: bool) -> Columns:
    """Return by name the fields of `Divergence`, one value for each pair; None as there.

    own: the traces with the ids of their own vocabularies. is_decimal: as `drift.measure_drift` has it.
    """
    moved = drift.measure_drift(laid, is_decimal=is_decimal)
    step = drift.DECIMAL_STEP if is_decimal else 0.0
    with np.errstate(invalid="ignore"):  # -inf minus -inf, and NaN, which is no number
        return {
            **_at_onset(laid, moved),
            **_while_shared(laid, moved),
            **_by_side(laid, is_decimal=is_decimal),
            **_at_start(laid, step),
            **_at_flip(laid, own, moved, step),
        }


def _at_onset(laid: PairedRows, moved: Drift) -> Columns:
    onsets = find_firsts(moved.differs, laid.starts)
    pairs = np.flatnonzero(onsets != NEVER)
    rows = laid.starts[pairs] + onsets[pairs]
    return {
        "drift_onset": _spread(moved.baseline_positions[rows].tolist(), pairs, laid),
        "drift_onset_candidate": _spread(moved.candidate_positions[rows].tolist(), pairs, laid),
        "gap_at_onset": _spread(_distances(moved.gaps[rows]), pairs, laid),
    }


def _while_shared(laid: PairedRows, moved: Drift) -> Columns:
    """Measure the top-2 gap shift D over all positions that agree."""
    known = drift.find_known_shifts(moved.shifts, laid.starts)
    n, sizes = np.diff(known.starts), np.abs(known.values)
    pairs = np.flatnonzero(n)
    begins = known.starts[pairs]
    largest = np.maximum.reduceat(sizes, begins) if len(pairs) else np.zeros(0)
    firsts = find_firsts(sizes == np.repeat(largest, n[pairs]), np.append(begins, len(sizes)))
    positions = moved.baseline_positions[known.rows[begins + firsts]]
    return {
        "n_shared": np.diff(laid.starts).tolist(),
        "n_usable": n.tolist(),
        "shift_rms": _spread(np.sqrt(known.squares[pairs] / n[pairs]).tolist(), pairs, laid),
        "shift_max": _spread(largest.tolist(), pairs, laid),
        "shift_max_at": _spread(positions.tolist(), pairs, laid),
        "is_approximate": laid.is_approximate.tolist(),
    }


def _by_side(laid: PairedRows, *, is_decimal: bool) -> Columns:
    """Measure where each side diverges, and its own facts up to there."""
    columns: Columns = {"shorter": laid.shorter}
    is_constrained = np.zeros(len(laid), np.bool_)
    has_logprobs = np.ones(len(laid), np.bool_)
    for name, side, end, parts_at in zip(
        SIDES, (laid.baseline, laid.candidate), ("", "_candidate"), laid.parts_at.T, strict=True
    ):
        n = np.diff(side.starts)
        last = np.where(parts_at == NEVER, n, parts_at)  # where the tokens part, both are chosen after the same text
        beaten, forbidden = find_beaten(side, is_decimal=is_decimal)
        is_constrained |= (forbidden != NEVER) & (forbidden <= last)
        known = find_firsts(~np.isnan(side.logprobs), side.starts)
        has_logprobs &= (n == 0) | ((known != NEVER) & (known <= last))
        columns |= {
            f"n_{name}": n.tolist(),
            f"parts_at{end}": _positions(parts_at),
            f"not_greedy_{name}": _positions(np.where(beaten <= last, beaten, NEVER)),
        }
    return columns | {"has_logprobs": has_logprobs.tolist(), "is_constrained": is_constrained.tolist()}


def _at_start(laid: PairedRows, step: float) -> Columns:
    """Measure position 0: after equal prompts both sides list nearly the same there. step: as in Listed."""
    sides = (laid.baseline, laid.candidate)
    pairs = np.flatnonzero((np.diff(sides[0].starts) > 0) & (np.diff(sides[1].starts) > 0))
    ours, theirs = (list_rows(side, side.starts[pairs], step=step) for side in sides)
    gaps = np.where((ours.n > 0) & (theirs.n > 0), ours.highest - theirs.highest, np.nan)
    return {
        "start_gap": _spread(_distances(gaps), pairs, laid),
        "are_start_top_two_equal": _spread(are_top_two_equal(ours, theirs), pairs, laid),
    }


def _at_flip(laid: PairedRows, own: Sides, moved: Drift, step: float) -> Columns:
    """Measure tokens by each side's ids, margins, and the logits' least movement. step: as in Listed."""
    pairs = laid.flipped
    rows = [side.starts[pairs] + at for side, at in zip(own, laid.parts_at[pairs].T, strict=True)]
    ours, theirs = (
        list_rows(side, own, step=step) for side, own in zip((laid.baseline, laid.candidate), rows, strict=True)
    )
    token, token_too = laid.baseline.token_ids[rows[0]], laid.candidate.token_ids[rows[1]]
    logprob, logprob_too = (side.logprobs[each].astype(np.float64) for side, each in zip(own, rows, strict=True))
    movement = _lead(ours, token, token_too, logprob) + _lead(theirs, token_too, token, logprob_too)
    unlisted = np.full(len(pairs), np.nan)
    are_both_listed = ours.has(token) & ours.has(token_too) & theirs.has(token) & theirs.has(token_too)
    at_flip: dict[str, Sequence[Any]] = {
        "token_baseline": own[0].token_ids[rows[0]].tolist(),
        "token_candidate": own[1].token_ids[rows[1]].tolist(),
        "margin_baseline": _distances(ours.margin),
        "margin_candidate": _distances(theirs.margin),
        "gap_before_flip": _before_flip(laid, moved, pairs),
        "are_top_two_equal": are_top_two_equal(ours, theirs),
        "movement": [None if math.isnan(value) else value for value in np.minimum(movement, MAX_MOVEMENT).tolist()],
        "moved_by": _distances(_moved_by(laid, moved, pairs, find_largest_gap(ours, theirs), step)),
    }
    flags = {
        "are_both_listed": are_both_listed,
        "are_both_top": _is_top(ours, logprob) & _is_top(theirs, logprob_too),
        "are_disjoint": are_disjoint(ours, theirs),
        "is_masked": (ours.look_up(token_too, unlisted) == -np.inf) | (theirs.look_up(token, unlisted) == -np.inf),
        "lacks_alternatives": (ours.n == 0) | (theirs.n == 0),
    }
    columns = {name: _spread(values, pairs, laid) for name, values in at_flip.items()}
    return columns | {name: _spread(values.tolist(), pairs, laid, False) for name, values in flags.items()}


def _before_flip(laid: PairedRows, moved: Drift, pairs: Indexes) -> list[float | None]:
    """Return the largest gap at the last position before each flip."""
    ends = laid.starts[pairs + 1]
    has_row = ends > laid.starts[pairs]
    gaps = np.full(len(pairs), np.nan)
    gaps[has_row] = moved.gaps[ends[has_row] - 1]
    return _distances(gaps)


def _moved_by(laid: PairedRows, moved: Drift, pairs: Indexes, at_flip: Numbers, step: float) -> Numbers:
    """Return the largest gaps of all positions before each flip and of the flip itself, added up."""
    rows = np.flatnonzero(moved.differs)
    begins, ends = (np.searchsorted(rows, laid.starts[each]).tolist() for each in (pairs, pairs + 1))
    gaps = moved.gaps[rows]
    before = np.array([gaps[begin:end].sum() for begin, end in zip(begins, ends, strict=True)], np.float64)
    moved_by: Numbers = before + np.where(at_flip <= step, 0.0, at_flip)
    return moved_by


def _lead(side: Listed, chosen: Ids, rival: Ids, logprob: Numbers) -> Numbers:
    """Return how much a side prefers its chosen token to the other side's, in nats.

    A lower bound if the other token is not listed.
    """
    lead = side.look_up(chosen, logprob) - side.look_up(rival, side.lowest)
    return np.where((side.n > 0) & ~np.isnan(logprob), np.minimum(lead, MAX_MOVEMENT), np.nan)


def _is_top(side: Listed, logprob: Numbers) -> Bools:
    return (side.n > 0) & (side.highest - logprob <= max(NOT_GREEDY, side.step))


def _spread(values: Sequence[Any], pairs: Indexes, laid: PairedRows, otherwise: Any = None) -> Sequence[Any]:
    """Return one value for each pair: the given ones for `pairs`, `otherwise` for all others."""
    if len(values) == len(laid):
        return values
    every = [otherwise] * len(laid)
    for pair, value in zip(pairs.tolist(), values, strict=True):
        every[pair] = value
    return every


def _positions(positions: NDArray[np.integer]) -> list[int | None]:
    return [None if position == NEVER else position for position in positions.tolist()]


def _distances(values: Numbers) -> list[float | None]:
    """Return each value without its sign where it is finite, else None."""
    return [value if math.isfinite(value) else None for value in np.abs(values).tolist()]
