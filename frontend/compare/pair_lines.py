"""Two responses' tokens in lines that break at the same positions on both sides."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from evalboard.contract.pair import PairPosition, TracePair
from evalboard.contract.trace import TokenAtPosition
from frontend.shell.tokens import columns

LINE_WIDTH = 56  # columns of one side at 1200 px
LABEL_WIDTH = 16  # columns that the words over a marked token take
NONE_ODD: Mapping[str, Collection[int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PairCell:
    """One token of one side. `mark`: where drift starts, or where the responses diverge.

    hangs_left: its label extends to the left, for lack of space. is_raised: it is above that of the next mark, which is
    too close for both in one line. is_odd: the other stack would not have chosen it.
    """

    key: int
    cell: TokenAtPosition
    mark: str = ""
    hangs_left: bool = False
    is_raised: bool = False
    is_odd: bool = False


@dataclass(frozen=True, slots=True)
class PairLine:
    """A line of tokens. first: key in the gutter. is_same: sides agree; is_past: no longer comparable."""

    first: int
    baseline: tuple[PairCell, ...]
    candidate: tuple[PairCell, ...]
    is_same: bool
    is_past: bool
    is_first_past: bool

    @property
    def has_marks(self) -> bool:
        return any(cell.mark for cell in (*self.baseline, *self.candidate))


def pair_lines(
    pair: TracePair, *, width: int = LINE_WIDTH, odd: Mapping[str, Collection[int]] = NONE_ODD
) -> tuple[PairLine, ...]:
    """Break after a token that ends a line, before what would not fit, and where the sides part.

    odd: by side, the positions of tokens that the other stack would not have chosen.
    """
    rows: list[list[PairPosition]] = []
    row: list[PairPosition] = []
    used = 0
    for position in pair.positions:
        needed = max(_width(position.baseline), _width(position.candidate))
        if row and (used + needed > width or position.at == _past_from(pair)):
            rows.append(row)
            row, used = [], 0
        row.append(position)
        used += needed
        if any(cell.breaks_line for cell in (*position.baseline, *position.candidate)):
            rows.append(row)
            row, used = [], 0
    return tuple(_line(pair, positions, width, odd) for positions in (*rows, row) if positions)


def _width(cells: Sequence[TokenAtPosition]) -> int:
    return sum(columns(cell.drawn) for cell in cells)


def _past_from(pair: TracePair) -> int | None:
    """Return the first key at which the sides read different texts: after a flip, or where one has ended."""
    if pair.parts_at is None:
        return None
    return pair.parts_at + 1 if pair.has_flip else pair.parts_at


def _line(pair: TracePair, positions: list[PairPosition], width: int, odd: Mapping[str, Collection[int]]) -> PairLine:
    past = _past_from(pair)
    is_past = past is not None and positions[0].at >= past
    here, there = (_cells(pair, positions, side, width, odd.get(side, ())) for side in ("baseline", "candidate"))
    return PairLine(
        first=positions[0].at,
        baseline=here,
        candidate=there,
        is_same=not is_past and [one.cell.drawn for one in here] == [other.cell.drawn for other in there],
        is_past=is_past,
        is_first_past=is_past and positions[0].at == past,
    )


def _cells(
    pair: TracePair, positions: list[PairPosition], side: str, width: int, odd: Collection[int]
) -> tuple[PairCell, ...]:
    pair_cells: list[PairCell] = []
    used, marked = 0, None  # the place and the column of the mark before
    for position in positions:
        mark = _mark(pair, position)
        cells: tuple[TokenAtPosition, ...] = getattr(position, side)
        for place, cell in enumerate(cells):
            shown = mark if place == len(cells) - 1 else ""
            hangs_left = bool(shown) and used > width - LABEL_WIDTH
            if shown and marked is not None and used - marked[1] < LABEL_WIDTH * (1 + hangs_left):
                pair_cells[marked[0]] = replace(pair_cells[marked[0]], is_raised=True)
            if shown:
                marked = len(pair_cells), used
            pair_cells.append(PairCell(position.at, cell, shown, hangs_left, is_odd=cell.position in odd))
            used += columns(cell.drawn)
    return tuple(pair_cells)


def _mark(pair: TracePair, position: PairPosition) -> str:
    if pair.has_flip and position.at == pair.parts_at:
        return "flip"
    return "onset" if position.at == pair.drift_onset else ""
