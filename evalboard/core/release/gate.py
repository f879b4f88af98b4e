"""The question of a verdict on one suite of a release, and the parts of its answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.release import MeasuredNoise
from evalboard.contract.run import Draws
from evalboard.core.compare import SideSetup
from evalboard.core.stats import BATCHES, Bools, EarlierNoise, Marks, SizeCounts

SHIP, NO_SHIP, INCONCLUSIVE, NOT_COMPARABLE = "ship", "no_ship", "inconclusive", "not_comparable"
Scores = NDArray[np.float64]
Span = tuple[float, float]  # low and high, in points


@dataclass(frozen=True, eq=False, kw_only=True)
class TargetedScores:
    """Repeats of only some cases, the same on both sides, chosen by predicted noise before scoring.

    is_chosen: bool[n]. baseline, candidate: float64[n, tA] and float64[n, tB], NaN for other cases and if missing.
    n_before: the repeats of all cases that each side had before the first of these, the fewer of both sides.
    """

    is_chosen: Bools
    baseline: Scores
    candidate: Scores
    n_before: int


@dataclass(frozen=True, eq=False, kw_only=True)
class GateQuestion:
    """Two runs of one suite. Cases may come in any order; all arrays in that order.

    groups: "" for a case that stands alone. baseline, candidate: float64[n, kA] and float64[n, kB], scores in [0, 1] by
    repeat, NaN where missing. draws_*: what those repeats are, their indexes by column. marks_*: what the answers
    are that are no draws, as core.stats.EffectiveDraws has marks; None where all are. assumed: the sides of which a
    person says that nothing caches there, so that their equal repeats count. independent: the sides of which there is
    an independent run. one_answer: the sides of which all repeats are one answer given again; first_differs: those
    whose later repeats are copies of each other and not of the first.
    loads_*: the batch sizes, or
    calls in flight, of each repeat, by column, as loads_counted says; none where nobody knows them. is_in_turn: the
    repeats of both sides ended in turn, within span_hours, which is None where nobody knows. are_apart: it is known
    that they took no turns. canaries: the last word of
    a canary probe on each endpoint in that time, as {"endpoint", "state"}. treatment: `model`, `stack` to judge what
    serves one model, `service` for both together, or `prompt`. prompts: where that is judged, how cases were paired, as
    the counts of core.compare.PromptsJudged. expired: where a rotation made the baseline expire, its facts for
    the sentence (runs.release.verdict_inputs).
    noisiest: bool[n], the cases that further repeats may be confined to; None where nothing foretells them. targeted:
    such repeats, where there are any. uncertified: each side that was decoded under batch-invariant kernels where no
    determinism certificate speaks of them, as {"side", "hosts", "endpoint", "profile"}. computation: where one bucket
    answered both sides and they are two computations, the fields of OneComputation. early_*: what is known of a side's
    noise beside its repeats; none where nothing is.
    """

    case_ids: Sequence[str]
    groups: Sequence[str]
    baseline: Scores
    candidate: Scores
    setup_baseline: SideSetup
    setup_candidate: SideSetup
    draws_baseline: Draws = field(default_factory=Draws)
    draws_candidate: Draws = field(default_factory=Draws)
    marks_baseline: Marks | None = None
    marks_candidate: Marks | None = None
    assumed: Sequence[str] = ()
    independent: Sequence[str] = ()
    one_answer: Sequence[str] = ()
    first_differs: Sequence[str] = ()
    loads_baseline: Sequence[SizeCounts] = ()
    loads_candidate: Sequence[SizeCounts] = ()
    loads_counted: str = BATCHES
    is_in_turn: bool = False
    are_apart: bool = False
    span_hours: float | None = None
    canaries: Sequence[Mapping[str, Any]] = ()
    treatment: str = "model"
    prompts: Mapping[str, Any] | None = None
    computation: Mapping[str, Any] | None = None
    expired: Mapping[str, Any] | None = None
    noisiest: Bools | None = None
    targeted: TargetedScores | None = None
    uncertified: Sequence[Mapping[str, Any]] = ()
    early_baseline: EarlierNoise = field(default_factory=EarlierNoise)
    early_candidate: EarlierNoise = field(default_factory=EarlierNoise)


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """A reason, a warning or a next step: a code of docs/verdict.md, and the facts for its sentence."""

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSide:
    """One side over the repeats of the checkpoint; points, None if not known.

    points: by repeat, over the cases that every repeat has. range: their lowest and highest. interval: where the
    score would lie if the same cases were run for ever. noise.sd_points: of one run's score, from flips within cases.
    """

    score: float | None
    points: tuple[float, ...]
    range: Span | None
    interval: Span | None
    noise: MeasuredNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Missing responses. n_*: by side. share: of cases without a score on one side. low, high: worst case."""

    n_baseline: int
    n_candidate: int
    share: float
    low: float | None
    high: float | None
