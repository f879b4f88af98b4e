"""The cases of a comparison by outcome, including those that no verdict counts.

They are packed in order when one of the lists is first read, FRAME at a time, and stored with the comparison: a page
reads only what it shows.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import overload

import numpy as np
import zstandard
from django.db import transaction
from django.db.models.fields.json import KeyTransform
from numpy.typing import NDArray

from evalboard.core.compare import CASE_PARTS, list_scores
from evalboard.core.stats import SideDraws, average_cases
from runs.compare import inputs as comparison_inputs
from runs.compare.outcomes import JudgedCase, find_sides
from runs.models import ComparisonRecord, ListedFrame

ALL_CASES = "all"
SCORE_CHANGED = "score_changed"  # in some pair, which is what the ledger counts: the first of all
CASE_LISTS = (*CASE_PARTS, SCORE_CHANGED, ALL_CASES)
FRAME = 256  # cases
MAX_FRAME_BYTES = 1 << 28

_SHAPE = struct.Struct("<III")

Scores = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CaseList(Sequence[JudgedCase]):
    """Cases in the order of a list, as columns; objects are made only for those accessed.

    indexes: int64[n], in the baseline's suite version. scores: float64[n, a] and float64[n, b], of the samples of
    either side, NaN if missing.
    """

    indexes: NDArray[np.int64]
    scores: tuple[Scores, Scores]

    def __len__(self) -> int:
        return len(self.indexes)

    @overload
    def __getitem__(self, place: int) -> JudgedCase: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[JudgedCase, ...]: ...
    def __getitem__(self, place: int | slice) -> JudgedCase | tuple[JudgedCase, ...]:
        if not isinstance(place, slice):
            return self[place : place + 1 or None][0]
        columns = self.indexes[place].tolist(), *(list_scores(scores[place]) for scores in self.scores)
        return tuple(
            JudgedCase(index, tuple(ours), tuple(theirs), None, is_beyond_chance=False)
            for index, ours, theirs in zip(*columns, strict=True)
        )

    def cut(self, places: slice) -> "CaseList":
        """Return some cases in a row, as columns."""
        return CaseList(self.indexes[places], (self.scores[0][places], self.scores[1][places]))


def read_list(comparison_id: int, name: str, first: int = 0, up_to: int | None = None) -> tuple[CaseList, int]:
    """Return these places of one of CASE_LISTS, and how many cases the list has.

    Those whose score changed come first, lost before gained, the furthest moved before others; then those whose text
    did. What is not kept yet is read from the columns of both sides, and kept. Raises NotFound.
    """
    columns = KeyTransform("parts", "summary"), KeyTransform("n_cases_score_changed", KeyTransform("counts", "summary"))
    known = ComparisonRecord.objects.filter(pk=comparison_id).values_list(*columns).first()
    if known and known[0]:
        places = _places([known[0][part] for part in CASE_PARTS], known[1], name)
        if (stored := _read_frames(comparison_id, places[first:up_to])) is not None:
            return stored, len(places)
    every, sizes, n_moved = _make(comparison_id)
    places = _places(sizes, n_moved, name)
    part = places[first:up_to]
    return every.cut(slice(part.start, part.stop)), len(places)


def _places(sizes: Sequence[int], n_moved: int, name: str) -> range:
    """Return a list's range in the list of all cases. sizes: of each of CASE_PARTS."""
    if name == SCORE_CHANGED:
        return range(n_moved)
    if name == ALL_CASES:
        return range(sum(sizes))
    at = CASE_PARTS.index(name)
    return range(sum(sizes[:at]), sum(sizes[: at + 1]))


def _read_frames(comparison_id: int, places: range) -> CaseList | None:
    """Return a range of the list of all cases from stored frames; None if they are missing."""
    firsts = range(places.start - places.start % FRAME, places.stop, FRAME)
    rows = ListedFrame.objects.filter(comparison=comparison_id, first__in=firsts).order_by("first")
    frames = [_unpack(bytes(data)) for data in rows.values_list("data", flat=True)]
    if not frames or len(frames) < len(firsts):
        return None
    columns = zip(*((frame.indexes, *frame.scores) for frame in frames), strict=True)
    indexes, ours, theirs = (np.concatenate(column) for column in columns)
    return CaseList(indexes, (ours, theirs)).cut(slice(places.start - firsts.start, places.stop - firsts.start))


def _make(comparison_id: int) -> tuple[CaseList, list[int], int]:
    """Return the list of all cases, the size of each of CASE_PARTS, and how many scores changed.

    The list is made of both sides' columns. It is stored if the comparison is of these columns.
    """
    ours, theirs, is_current = find_sides(comparison_id)
    inputs = comparison_inputs.load(ours, theirs)
    parts, has_moved = inputs.case_parts, inputs.matched.has_moved
    sides = inputs.baseline.scored_draws[0], inputs.candidate.scored_draws[0]
    cases = np.arange(len(parts))
    moves = _moves(sides, cases)
    places = np.lexsort((cases, -np.abs(moves), moves >= 0, ~has_moved, parts))
    every = CaseList(inputs.baseline.case_indexes[places], (sides[0].scores[places], sides[1].scores[places]))
    if is_current:
        _keep(comparison_id, every)
    return every, np.bincount(parts, minlength=len(CASE_PARTS)).tolist(), int(np.count_nonzero(has_moved))


def _keep(comparison_id: int, every: CaseList) -> None:
    frames = (
        ListedFrame(comparison_id=comparison_id, first=first, data=_pack(every.cut(slice(first, first + FRAME))))
        for first in range(0, len(every), FRAME)
    )
    with transaction.atomic():
        # Not while a worker is at it: then who reads the next page keeps them.
        free = ComparisonRecord.objects.select_for_update(skip_locked=True).filter(pk=comparison_id)
        if free.exists():
            ListedFrame.objects.bulk_create(frames, batch_size=500, ignore_conflicts=True)


def _pack(cases: CaseList) -> bytes:
    ours, theirs = cases.scores
    shape = _SHAPE.pack(len(cases), ours.shape[1], theirs.shape[1])
    columns = cases.indexes.astype("<u4"), ours.astype("<f8"), theirs.astype("<f8")
    return zstandard.compress(b"".join([shape, *(column.tobytes() for column in columns)]))


def _unpack(packed: bytes) -> CaseList:
    data = zstandard.decompress(packed, max_output_size=MAX_FRAME_BYTES)
    n, *widths = _SHAPE.unpack_from(data)
    ends = np.cumsum([_SHAPE.size, 4 * n, *(8 * n * width for width in widths)]).tolist()
    indexes = np.frombuffer(data[ends[0] : ends[1]], "<u4").astype(np.int64)
    ours, theirs = (
        np.frombuffer(data[start:end], "<f8").reshape(n, width)
        for (start, end), width in zip(pairwise(ends[1:]), widths, strict=True)
    )
    return CaseList(indexes, (ours, theirs))


def _moves(sides: tuple[SideDraws, SideDraws], cases: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return by how much the mean score of each case rose; 0 where a side has no draw of it."""
    has_both = ~(np.isnan(sides[0].scores[cases]).all(axis=1) | np.isnan(sides[1].scores[cases]).all(axis=1))
    moves = np.zeros(len(cases))
    scored = cases[has_both]
    moves[has_both] = np.round(average_cases(sides[1].scores[scored]) - average_cases(sides[0].scores[scored]), 9)
    return moves
