"""Find how two traces of one case part: drift onset, flip, and the numbers there.

Nothing after the flip is looked at: from there the two sides read different texts, and their logprobs no longer
answer the same question. Logprobs are in nats. docs/divergence.md defines every number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evalboard.core.compare.alignment import Shorter
from evalboard.core.compare.paired_rows import Vocabularies, lay_pairs
from evalboard.core.compare.partings import measure_partings
from evalboard.core.trace import Trace, TraceColumns, join_traces

Kind = Literal["identical", "drift_only", "flipped", "text_only"]

PART_CELLS = 1 << 17  # logprobs of both sides that are measured at once, so that they stay in the processor's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """How two traces part. Positions count from 0; None is "never" for a position and "not known" for a number.

    drift_onset, parts_at: positions on the baseline's side; `*_candidate` are the candidate's, which are the same
    unless the comparison is approximate. shorter: the side that ends where the other goes on; else the tokens at
    `parts_at` differ, which is the flip. token_*, margin_*: of each side at the flip. gap_at_onset, gap_before_flip:
    the largest gap of the tokens that both sides list, at the onset and at the last position that agrees. n_shared:
    positions that agree. n_usable: those of them on which the top-2 gap shift D is known; shift_rms: its root mean
    square; shift_max: the largest |D|, at the baseline's position shift_max_at. movement: by how much the logit
    difference of the two chosen tokens moved at the flip, which is the sum of the margins where `are_both_top` (each
    side chose its top-1); a lower bound unless `are_both_listed`. are_disjoint: at the flip no alternative of one side
    is among the other's. moved_by: the largest gaps of all positions up to the flip and at it, together; None where the
    flip has none.
    not_greedy_*: the first position, up to the parting, where the chosen token was not top-1. start_*: of position 0.
    text_position: the first character that differs, where there are texts and no tokens.
    """

    drift_onset: int | None = None
    drift_onset_candidate: int | None = None
    parts_at: int | None = None
    parts_at_candidate: int | None = None
    shorter: Shorter | None = None
    n_baseline: int = 0
    n_candidate: int = 0
    token_baseline: int | None = None
    token_candidate: int | None = None
    margin_baseline: float | None = None
    margin_candidate: float | None = None
    gap_at_onset: float | None = None
    gap_before_flip: float | None = None
    n_shared: int = 0
    n_usable: int = 0
    shift_rms: float | None = None
    shift_max: float | None = None
    shift_max_at: int | None = None
    are_top_two_equal: bool | None = None
    are_both_listed: bool = False
    are_both_top: bool = False
    are_disjoint: bool = False
    movement: float | None = None
    moved_by: float | None = None
    not_greedy_baseline: int | None = None
    not_greedy_candidate: int | None = None
    start_gap: float | None = None
    are_start_top_two_equal: bool | None = None
    has_logprobs: bool = False
    is_approximate: bool = False
    text_position: int | None = None

    @property
    def flip(self) -> int | None:
        """The baseline's position of the first tokens that differ; None where one side merely ends."""
        return self.parts_at if self.shorter is None else None

    @property
    def kind(self) -> Kind:
        """What differs. A side that merely ends earlier has parted too, so it counts as flipped."""
        if self.text_position is not None:
            return "text_only"
        if self.parts_at is not None:
            return "flipped"
        return "identical" if self.drift_onset is None else "drift_only"


def find_divergence(
    baseline: Trace,
    candidate: Trace,
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
    """Find how each pair of traces parts: trace i of the baseline and trace i of the candidate, as `find_divergence`.

    A pair's numbers are the same to the bit whatever stands beside it. vocabularies: one entry for each pair, or None
    where every pair has one vocabulary.
    """
    partings: list[Divergence] = []
    for first, last in _parts(baseline, candidate):
        own = baseline.cut(first, last), candidate.cut(first, last)
        laid = lay_pairs(*own, vocabularies and vocabularies[first:last])
        columns = measure_partings(laid, own, is_decimal=is_decimal)
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
