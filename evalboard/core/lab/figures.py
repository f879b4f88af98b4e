"""Summarise the passes of conditions as rows of the experiment's table."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any

from evalboard.contract.lab_kinds import CHOICES, Source, SourceFinding, State
from evalboard.core.lab.spread import Spread, measure_spread


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFigures:
    """The passes of one condition, each compared with the control's first pass.

    points: by pass, None if it has no score. repeats: the passes' numbers in their run; names: of each point if it is
    not a pass of a run. n_same: passes that are the same to the bit, None if nothing was decoded. n_responses:
    responses that both have; n_flipped: those of them with another text; first_flips: where some of these diverge, in
    tokens from 0. seconds: of engines, without their starts.
    """

    points: tuple[float | None, ...]
    repeats: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    n_same: int | None = None
    n_responses: int = 0
    n_flipped: int = 0
    first_flips: tuple[int, ...] = ()
    n_tokens: int = 0
    seconds: float = 0.0
    n_starts: int = 0

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "ArmFigures":
        """Return what `dataclasses.asdict` made, after it was JSON."""
        lists = {name: tuple(stored[name]) for name in ("points", "repeats", "names", "first_flips")}
        return cls(**{**stored, **lists})


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One row of the table.

    spread: of the scores that are known, None without any; of a choice, and not a draw, with the control's score among
    them and without intervals. reach: half of the range from the lowest to the highest, the control's score among them.
    shift: how far all of them are from the control's score, where they have one score. n_runs: passes, or computed
    points.
    """

    is_sampled: bool
    n_runs: int
    spread: Spread | None
    reach: float | None
    shift: float | None
    n_same: int | None
    n_responses: int
    n_flipped: int
    first_flip: int | None
    tokens_per_second: float | None

    @property
    def at_most(self) -> float | None:
        """Half of the widest range that the runs leave possible; None where nothing was sampled."""
        interval = None if self.spread is None else self.spread.range_interval
        return None if interval is None else interval[1] / 2


def combine_arms(source: Source, arms: Sequence[ArmFigures], *, control: float | None, step: float) -> Figures:
    """Return the table row of a source. control: the control's score; step: points of one case."""
    known = [value for arm in arms for value in arm.points if value is not None]
    is_sampled = source not in CHOICES
    beside = known if control is None else [*known, control]
    spread = None
    if known:
        sampled = measure_spread(known if is_sampled else beside, step=step)
        spread = sampled if is_sampled else Spread(sampled.n, sampled.low, sampled.high, None, None, None)
    same = [arm.n_same for arm in arms if arm.n_same is not None]
    flips = [place for arm in arms for place in arm.first_flips]
    seconds = sum(arm.seconds for arm in arms)
    return Figures(
        is_sampled=is_sampled,
        n_runs=sum(len(arm.points) for arm in arms),
        spread=spread,
        reach=(max(beside) - min(beside)) / 2 if known else None,
        shift=known[0] - control if control is not None and len(set(known)) == 1 else None,
        n_same=sum(same) if same else None,
        n_responses=sum(arm.n_responses for arm in arms),
        n_flipped=sum(arm.n_flipped for arm in arms),
        first_flip=median_low(flips) if flips else None,
        tokens_per_second=sum(arm.n_tokens for arm in arms) / seconds if seconds else None,
    )


def judge_rows(rows: Sequence[tuple[Source, Figures | None]]) -> tuple[SourceFinding, ...]:
    """Return a finding for each row, None being one without figures yet. The control's is among them."""
    controls = [figures for source, figures in rows if source is Source.CONTROL]
    control = _judge_control(controls[0] if controls else None)
    return tuple(
        control if source is Source.CONTROL else _judge_source(figures, control.state) for source, figures in rows
    )


def _judge_control(figures: Figures | None) -> SourceFinding:
    if figures is None:
        return SourceFinding(State.NOT_MEASURED)
    if figures.spread is None or figures.spread.n < 2:
        return SourceFinding(State.NOT_SCORED)
    if figures.n_flipped or figures.spread.range:
        return SourceFinding(State.MOVED, figures.spread.range / 2, figures.at_most)
    state = State.HOLDS if figures.n_same == figures.n_runs else State.HOLDS_IN_ANSWERS
    return SourceFinding(state, 0.0, figures.at_most)


def _judge_source(figures: Figures | None, control: State) -> SourceFinding:
    if figures is None or control is State.NOT_MEASURED:
        return SourceFinding(State.NOT_MEASURED)
    if figures.reach is None or control is State.NOT_SCORED:
        return SourceFinding(State.NOT_SCORED)
    moved = (figures.reach, figures.at_most)
    if control is State.MOVED:
        return SourceFinding(State.NOT_BLAMED, *moved)
    if figures.reach:
        return SourceFinding(State.SOURCE, *moved)
    if figures.n_flipped:
        return SourceFinding(State.ANSWERS_ONLY, *moved)
    is_same = figures.n_same is None or figures.n_same == figures.n_runs or control is State.HOLDS_IN_ANSWERS
    return SourceFinding(State.NONE_SEEN if is_same else State.BITS_ONLY, *moved)
