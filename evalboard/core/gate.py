"""One suite of a release: what is asked of the verdict about it, and what the verdict says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evalboard.core.comparability import Asked
from evalboard.core.draws import Draws
from evalboard.core.live_answers import Marks

SHIP, NO_SHIP, INCONCLUSIVE, NOT_COMPARABLE = "ship", "no_ship", "inconclusive", "not_comparable"
TIERS = ("critical", "advisory")
Scores = NDArray[np.float64]
Span = tuple[float, float]  # low and high, in points


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """Two runs of one suite. Cases may come in any order; all arrays in that order.

    groups: "" for a case that stands alone. baseline, candidate: float64[n, kA] and float64[n, kB], scores in [0, 1]
    by repeat, NaN where missing. draws_*: what those repeats are, their indexes by column. marks_*: what the logs say
    of the answers, as core.live_answers has marks; None where they say nothing. treatment: `model`, or `stack` to
    judge what serves one model.
    is_baseline_expired: "" or the sentence that says why.
    """

    case_ids: Sequence[str]
    groups: Sequence[str]
    baseline: Scores
    candidate: Scores
    asked_baseline: Asked
    asked_candidate: Asked
    draws_baseline: Draws = field(default_factory=Draws)
    draws_candidate: Draws = field(default_factory=Draws)
    marks_baseline: Marks | None = None
    marks_candidate: Marks | None = None
    treatment: str = "model"
    is_baseline_expired: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A reason, a warning or a next step: a code of docs/verdict.md and what it means here, in sentences."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side by itself, over the repeats of the look; points, None where not known.

    points: by repeat, over the cases that every repeat has. range: their lowest and highest. interval: where the
    score would lie if the same cases were run for ever. sd_points: of one run's score, from flips within cases.
    """

    score: float | None
    points: tuple[float, ...]
    range: Span | None
    interval: Span | None
    sd_points: float | None
    disagreement_rate: float | None
    n_unstable: int
    range5_points: float | None
    is_overdispersed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The change on other cases like these; points. n_groups_changed: groups with a case that moved.

    resolution_points: the smallest change there that so many cases tell from the luck of drawing them.
    design_effect: how many times the variance is what it would be if the cases of a group were independent.
    """

    low: float
    high: float
    level: float
    n_groups: int
    n_groups_changed: int
    design_effect: float
    is_concentrated: bool
    resolution_points: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """n_*: missing responses of each side. share: of cases without a score on one side. low, high: worst case."""

    n_baseline: int
    n_candidate: int
    share: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Cases whose mean score moved by at least 0.6, and cases that are unstable on either side; ids in order."""

    n_fixed: int
    n_broken: int
    n_unstable: int
    fixed: tuple[str, ...]
    broken: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The interval to expect with so many repeats a side, were the difference to stay as it is."""

    repeats: int
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVerdict:
    """What the rules say of one suite. Everything in points; None where the data cannot say.

    difference: candidate minus baseline over the cases judged, in [low, high] at `level`. look: the repeats that
    decide; None before the first look. method: `flips`, `seeds` or `runs`, whichever noise the interval rests on;
    None where no repeat measured any. cases_needed: look → the fewest cases that could settle it. p_no_ship: the
    chance of so low a difference if the drop were exactly the tolerance; p_change: of one so far from 0 if nothing had
    changed.
    logged: which of baseline and candidate were read from a log.
    """

    verdict: str
    reasons: tuple[Line, ...]
    warnings: tuple[Line, ...]
    next: tuple[Line, ...]
    n_cases: int
    n_cases_judged: int
    baseline: Side
    candidate: Side
    tolerance_points: float
    guard_points: float
    k_baseline: int
    k_candidate: int
    missing: Missing
    cases_needed: Mapping[int, int]
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    reach: Reach | None = None
    resolution_points: float | None = None
    resolution_elsewhere_points: float | None = None
    look: int | None = None
    alpha: float | None = None
    method: str | None = None
    repeats_needed: int | None = None
    expected: Expected | None = None
    leaning: str | None = None
    changed: Changed | None = None
    p_no_ship: float | None = None
    p_change: float | None = None
    logged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GateInput:
    """A gate of a release as `decide` takes it: only `critical` ones decide."""

    tier: str
    suite_name: str
    verdict: GateVerdict
