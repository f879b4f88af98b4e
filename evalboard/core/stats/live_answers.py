"""Tell which answers of a run are draws: fresh answers of the model that was asked.

An answer out of a cache repeats an earlier one, and one after a fallback is another backend's. They are answers,
shown and compared as such; but noise, ranges and verdicts use draws alone. An answer that is no draw is not
missing, and a case with one draw has one, however many answers it has. `effective_draws` adds the mark of an answer
that is an earlier one given again although nothing says so.

Marks are uint8[n_cases, k], 0 for an answer without any and for a missing one.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# What a log may say of an answer; the place of each is its bit in a mark. One that was tried again is a draw.
MARKS = ("cached", "fallback", "retried")
COPIED = "copies"  # never stored: `effective_draws` finds it in the answers
NO_DRAW_MARKS = ("cached", "fallback", COPIED)

MIN_DRAW_SHARE = 0.99  # below this the answers of a run are not those of the model that was asked

Bools = NDArray[np.bool_]
Marks = NDArray[np.uint8]
Scores = NDArray[np.float64]


def make_mark(names: Iterable[str]) -> int:
    """Return the bit mask of mark names. Raises ValueError for an unknown name."""
    return sum(1 << _EVERY.index(name) for name in set(names))


def list_mark_names(mark: int) -> tuple[str, ...]:
    """Return the names in a bit mask, in the order of MARKS."""
    return tuple(name for place, name in enumerate(MARKS) if mark >> place & 1)


def is_left_out(marks: Marks) -> Bools:
    """Tell which answers are no draws: bool, of the shape of the marks."""
    flags: Bools = (marks & _LEFT_OUT) != 0
    return flags


def has_enough_draws(n_left_out: int, n_answers: int) -> bool:
    """Tell whether enough answers are fresh samples for a run to count."""
    return n_left_out <= (1 - MIN_DRAW_SHARE) * n_answers


def count_left_out(scores: Scores, marks: Marks | None) -> dict[str, int]:
    """Count the scored answers that are no draws, each once, by the first mark that makes it so."""
    counts: dict[str, int] = {}
    if marks is None:
        return counts
    marks = np.where(np.isnan(scores), 0, marks)
    for name in NO_DRAW_MARKS:
        is_so = (marks & make_mark([name])) != 0
        if n := int(np.count_nonzero(is_so)):
            counts[name] = n
        marks = np.where(is_so, 0, marks)
    return counts


def select_draws(scores: Scores, marks: Marks) -> Scores:
    """Return the scores of fresh samples: float64[n_cases, k], NaN if missing or not a sample."""
    left_out = is_left_out(marks)
    return np.where(left_out, np.nan, scores) if left_out.any() else scores


def count_draws(is_draw: Bools) -> float:
    """Return the harmonic mean of fresh samples per case, over cases that have one; 0 if none has.

    Takes bool[n_cases, k]. Noise falls with one over the samples of each case, so cases with few of them weigh most.
    """
    by_case = np.count_nonzero(is_draw, axis=1)
    by_case = by_case[by_case > 0]
    return float(len(by_case) / (1 / by_case).sum()) if len(by_case) else 0.0


def is_repeat_of_draws(left_out: Bools, is_there: Bools) -> Bools:
    """Tell which repeats consist mostly of fresh samples: bool[k], from two bool[n_cases, k].

    A repeat without answers does not count.
    """
    n_there = np.count_nonzero(is_there, axis=0)
    flags: Bools = (n_there > 0) & (2 * np.count_nonzero(left_out & is_there, axis=0) <= n_there)
    return flags


@dataclass(frozen=True, eq=False)
class SideDraws:
    """One side by repeat: the scores of its samples, and which scored answers are no samples.

    scores: float64[n_cases, k]; is_left_out: bool[n_cases, k]. places: which columns of the side these are.
    """

    scores: Scores
    is_left_out: Bools
    places: tuple[int, ...]

    @property
    def is_missing(self) -> Bools:
        """bool[n_cases, k]: where no answer came at all."""
        flags: Bools = np.isnan(self.scores) & ~self.is_left_out
        return flags

    @property
    def n_draws(self) -> int:
        """The draws that this side has, rounded: with nothing left out, its repeats."""
        return int(count_draws(~self.is_left_out) + 0.5)

    def first(self, n: int | None) -> "SideDraws":
        """Return the first n repeats; all of them for None."""
        return self if n is None else SideDraws(self.scores[:, :n], self.is_left_out[:, :n], self.places[:n])

    def as_one(self) -> "SideDraws":
        """Return the first draw of each case as the one repeat: of repeats that all are one draw."""
        if len(self.places) < 2:
            return self
        first = np.argmax(~np.isnan(self.scores), axis=1)[:, None]
        scores = np.take_along_axis(self.scores, first, axis=1)
        is_left_out = np.isnan(scores) & self.is_left_out.any(axis=1, keepdims=True)
        return SideDraws(scores, is_left_out, self.places[:1])


def read_draws(scores: Scores, marks: Marks | None = None) -> SideDraws:
    """Return a side's repeats of draws: one in which no case has a score never ran, and is none either."""
    is_scored = ~np.isnan(scores)
    left_out = np.zeros(scores.shape, np.bool_) if marks is None else is_left_out(marks) & is_scored
    is_repeat = is_repeat_of_draws(left_out, is_scored)
    places = tuple(np.flatnonzero(is_repeat).tolist())
    return SideDraws(np.where(left_out, np.nan, scores)[:, is_repeat], left_out[:, is_repeat], places)


_EVERY = (*MARKS, COPIED)
_LEFT_OUT = make_mark(NO_DRAW_MARKS)
