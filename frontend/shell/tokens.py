"""Tokens as the response page shows them: line breaks by the server, margins in four steps."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from evalboard.contract.trace import TokenAtPosition

LINE_WIDTH = 62  # columns that fit next to the text at 1200 px
MARGIN_STEPS = (0.02, 0.25, 1.0)  # nats; narrower than the first is the strongest mark


@dataclass(frozen=True, slots=True)
class TokenLine:
    """A line of tokens; `first` is the position that the gutter names."""

    first: int
    cells: tuple[TokenAtPosition, ...]


def margin_step(margin: float | None) -> int:
    """Return 0 for a margin of 1 nat or more (or unknown), 3 for under 0.02."""
    if margin is None:
        return 0
    return sum(margin < limit for limit in MARGIN_STEPS)


def lines(
    tokens: Sequence[TokenAtPosition], *, width: int = LINE_WIDTH, before: int | None = None
) -> tuple[TokenLine, ...]:
    """Break lines after line-end tokens, before those that do not fit, and before position `before`."""
    done: list[TokenLine] = []
    row: list[TokenAtPosition] = []
    used = 0
    for cell in tokens:
        needed = columns(cell.drawn)
        if row and (used + needed > width or cell.position == before):
            done.append(TokenLine(row[0].position, tuple(row)))
            row, used = [], 0
        row.append(cell)
        used += needed
        if cell.breaks_line:
            done.append(TokenLine(row[0].position, tuple(row)))
            row, used = [], 0
    if row:
        done.append(TokenLine(row[0].position, tuple(row)))
    return tuple(done)


@lru_cache(maxsize=8192)  # a text repeats most of its tokens
def columns(text: str) -> int:
    """Count columns of a monospaced font: wide East Asian characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
