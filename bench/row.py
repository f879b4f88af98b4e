"""One figure of `make bench`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

# Units in which less is better; of "…/s" and "times", more is. Of any other (%, points wide), neither.
LESS_IS_BETTER = ("s", "ms", "µs", "MB", "kB", "bytes", "bytes/position", "queries", "errors", "ratio")
TIMES = ("s", "ms", "µs")


@dataclass(frozen=True)
class Row:
    """Hold what one measurement gave.

    what: the thing measured, with its size and seed; the name under which the figure is stored.
    value: in `unit`, or a text where it is no number.
    note: how `value` came to be, such as "median of 20".
    aim: what it should be, in words.
    trials: the readings that `value` is the median of, in `unit`; empty where one was taken.
    """

    what: str
    value: float | str
    unit: str = ""
    note: str = ""
    aim: str = ""
    trials: tuple[float, ...] = ()

    @property
    def is_time(self) -> bool:
        """Whether a slower machine gives another value: seconds, or so many a second."""
        return self.unit in TIMES or self.is_rate

    @property
    def is_rate(self) -> bool:
        """Whether it is so many a second."""
        return self.unit.endswith("/s")

    @property
    def sign(self) -> int:
        """1 where more is better, -1 where less is, 0 where neither."""
        if self.is_rate or self.unit == "times":
            return 1
        return -1 if self.unit in LESS_IS_BETTER else 0


def read_row(plain: Mapping[str, Any]) -> Row:
    """Make the row that was written as JSON."""
    return Row(**{**plain, "trials": tuple(plain["trials"])})


def median_row(what: str, trials: Sequence[float], unit: str, *, aim: str = "") -> Row:
    """Make the row of a figure that was read several times."""
    note = f"median of {len(trials)}, {min(trials):.4g} to {max(trials):.4g}"
    return Row(what, median(trials), unit, note, aim, tuple(trials))
