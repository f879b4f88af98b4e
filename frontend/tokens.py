"""Tokens as the response page lays them out: lines that break where the server says, margins in four steps."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from runs.selectors.response import TokenCell

LINE_WIDTH = 62  # columns; what fits beside the text at 1200 px
MARGIN_STEPS = (0.02, 0.25, 1.0)  # nats; narrower than the first is the strongest mark


@dataclass(frozen=True, slots=True)
class Line:
    """A line of tokens; `first` is the position that the gutter names."""

    first: int
    cells: tuple[TokenCell, ...]


def margin_step(margin: float | None) -> int:
    """0 for a margin of 1 nat or more (or unknown), 3 for under 0.02."""
    if margin is None:
        return 0
    return sum(margin < limit for limit in MARGIN_STEPS)


def lines(tokens: Sequence[TokenCell], *, width: int = LINE_WIDTH) -> tuple[Line, ...]:
    """Break after a token that ends a line, and before one that would not fit."""
    done: list[Line] = []
    row: list[TokenCell] = []
    used = 0
    for cell in tokens:
        needed = columns(cell.token)
        if row and used + needed > width:
            done.append(Line(row[0].position, tuple(row)))
            row, used = [], 0
        row.append(cell)
        used += needed
        if cell.breaks_line:
            done.append(Line(row[0].position, tuple(row)))
            row, used = [], 0
    if row:
        done.append(Line(row[0].position, tuple(row)))
    return tuple(done)


def columns(text: str) -> int:
    """Columns of a monospaced font: wide East Asian characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def narrowest(tokens: Sequence[TokenCell]) -> TokenCell | None:
    """The position where the choice was closest; None where no margin is known."""
    known = [cell for cell in tokens if cell.margin is not None]
    return min(known, key=lambda cell: (cell.margin, cell.position), default=None)
