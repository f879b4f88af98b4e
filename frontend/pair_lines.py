"""Two responses' tokens in lines that break at the same steps on both sides."""

from collections.abc import Sequence
from dataclasses import dataclass

from frontend.tokens import columns
from runs.selectors.response import TokenCell
from runs.selectors.trace_pair import PairReport, Step

LINE_WIDTH = 56  # columns of one side at 1200 px
LABEL_WIDTH = 16  # columns that the words over a marked token take


@dataclass(frozen=True, slots=True)
class PairCell:
    """One token of one side. `mark` is "onset" or "flip" where the two responses drift or part here.

    hangs_left: its words must run to the left, for want of room.
    """

    key: int
    cell: TokenCell
    mark: str = ""
    hangs_left: bool = False


@dataclass(frozen=True, slots=True)
class PairLine:
    """`first` is the key that the gutter names. is_same: both sides read the same; is_past: no longer comparable."""

    first: int
    baseline: tuple[PairCell, ...]
    candidate: tuple[PairCell, ...]
    is_same: bool
    is_past: bool
    is_first_past: bool

    @property
    def has_marks(self) -> bool:
        return any(cell.mark for cell in (*self.baseline, *self.candidate))


def pair_lines(report: PairReport, *, width: int = LINE_WIDTH) -> tuple[PairLine, ...]:
    """Break after a token that ends a line, before what would not fit, and where the sides part."""
    rows: list[list[Step]] = []
    row: list[Step] = []
    used = 0
    for step in report.steps:
        needed = max(_width(step.baseline), _width(step.candidate))
        if row and (used + needed > width or step.key == _past_from(report)):
            rows.append(row)
            row, used = [], 0
        row.append(step)
        used += needed
        if any(cell.breaks_line for cell in (*step.baseline, *step.candidate)):
            rows.append(row)
            row, used = [], 0
    return tuple(_line(report, steps, width) for steps in (*rows, row) if steps)


def _width(cells: Sequence[TokenCell]) -> int:
    return sum(columns(cell.token) for cell in cells)


def _past_from(report: PairReport) -> int | None:
    """The first key at which the sides read different texts: after a flip, or where one has ended."""
    if report.parts_at is None:
        return None
    return report.parts_at + 1 if report.has_flip else report.parts_at


def _line(report: PairReport, steps: list[Step], width: int) -> PairLine:
    past = _past_from(report)
    is_past = past is not None and steps[0].key >= past
    here, there = (_cells(report, steps, side, width) for side in ("baseline", "candidate"))
    return PairLine(
        first=steps[0].key,
        baseline=here,
        candidate=there,
        is_same=not is_past and [one.cell.token for one in here] == [other.cell.token for other in there],
        is_past=is_past,
        is_first_past=is_past and steps[0].key == past,
    )


def _cells(report: PairReport, steps: list[Step], side: str, width: int) -> tuple[PairCell, ...]:
    found: list[PairCell] = []
    used = 0
    for step in steps:
        mark = _mark(report, step)
        cells: tuple[TokenCell, ...] = getattr(step, side)
        for place, cell in enumerate(cells):
            shown = mark if place == len(cells) - 1 else ""
            found.append(PairCell(step.key, cell, shown, bool(shown) and used > width - LABEL_WIDTH))
            used += columns(cell.token)
    return tuple(found)


def _mark(report: PairReport, step: Step) -> str:
    if report.has_flip and step.key == report.parts_at:
        return "flip"
    return "onset" if step.key == report.onset else ""
