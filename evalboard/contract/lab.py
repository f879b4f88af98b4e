"""The lab: experiments, what their arms cost and came to, and what is said of each source of variance."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Id, Instant, Number, PageAddress, Points, Range, page_only, says
from evalboard.contract.parts import name_version
from evalboard.contract.run import SuiteNamed
from evalboard.core.lab_kinds import SOURCES, State

KINDS = ("variance",)
STATUSES = ("planned", "running", "finished", "stopped", "cancelled", "failed")
ARM_STATUSES = ("waiting", "running", "finished", "cut", "failed", "missing")

SourceName = Annotated[str, says(enum=tuple(map(str, SOURCES)))]
Interval = Annotated[tuple[float, float], says(minItems=2, maxItems=2, description="95 %, in points")]


class LabCost(Contract):
    """What arms take. Null: no earlier run says it."""

    n_runs: Annotated[int, says(minimum=0, description="passes over the suite")]
    n_starts: Annotated[int, says(minimum=0, description="of engines")]
    tokens: Count | None
    minutes: Annotated[float | None, says(minimum=0, description="of engines at work, starts included")]


class LabArm(Contract):
    """One condition: an ordinary run, or with no runs what is computed from the control's texts."""

    source: SourceName
    name: Annotated[str, says(description="what tells it from other arms of its source")]
    endpoint: str
    status: Annotated[str, says(enum=ARM_STATUSES)]
    run: Id | None
    n_done: Annotated[int, says(minimum=0, description="passes that have ended")]
    cost: Annotated[LabCost, says(description="as it was planned")]
    spent_minutes: float
    problem: str | None


class LabPoint(Contract):
    """One pass of an arm, or one way to score the control's texts; `repeat` null: nothing was decoded for it."""

    score: Points
    run: Id | None
    repeat: Number | None
    name: str


class LabRow(Contract):
    """One row of the table: a source, and how far the score moves where it is let go."""

    source: SourceName
    name: str
    label: Annotated[str, says(description="the source, for people")]
    condition: Annotated[str, says(description="what is let go, for people")]
    fixed_by: Annotated[str, says(description="what keeps it from moving the score, for people")]
    state: Annotated[str, says(enum=tuple(map(str, State)))]
    finding: Annotated[str, says(description="the state, for people")]
    n_runs: Annotated[int, says(minimum=0, description="passes, or ways to score")]
    points: tuple[LabPoint, ...]
    reach: Annotated[float | None, says(description="half of the range, the control's score in it: ± points")]
    at_most: Annotated[float | None, says(description="half of the widest range that is still possible: ± points")]
    range: Annotated[Range | None, says(description="lowest and highest score, in points")]
    range_interval: Annotated[
        Interval | None, says(description="of the mean range of as many runs; null where nothing was drawn")
    ]
    sd: float | None
    sd_interval: Interval | None
    shift: Annotated[float | None, says(description="points from the control's score, where all have one score")]
    n_same: Annotated[Count | None, says(description="passes that are the control's first, to the bit")]
    n_responses: Annotated[int, says(minimum=0, description="that are held against the control's")]
    n_flipped: Annotated[int, says(minimum=0, description="of them, those with another text")]
    first_flip: Annotated[Count | None, says(description="the median position where these part, in tokens from 0")]
    speed: Annotated[float | None, says(description="tokens a second, as a multiple of the control's")]

    @property
    def width(self) -> float | None:
        return None if self.range is None else self.range[1] - self.range[0]


class NotMeasured(Contract):
    """A source that is not measured here: `code` is stable, `reason` is for people."""

    source: SourceName
    label: str
    code: str
    reason: str


class ExperimentRow(Contract):
    """An experiment in a list."""

    id: Id
    kind: Annotated[str, says(enum=KINDS)]
    suite: SuiteNamed
    endpoint: Annotated[str, says(description="the one that all else is held against")]
    profile: str
    profile_version: Number
    runs: Annotated[int, says(minimum=1, description="passes over the suite in each arm")]
    status: Annotated[str, says(enum=STATUSES)]
    sentence: Annotated[str, says(description="what was found, as far as it is")]
    budget_minutes: float
    created_by: str | None
    created_at: Instant
    started_at: Annotated[Instant | None, says(description="when the plan was confirmed")]
    finished_at: Instant | None
    url: PageAddress

    @property
    def profile_name(self) -> str:
        return name_version(self.profile, self.profile_version)

    @property
    def is_terminal(self) -> bool:
        return self.status in ("finished", "stopped", "cancelled", "failed")


class Experiment(ExperimentRow):
    """An experiment with its plan, and its table as far as it is."""

    problem: Annotated[str | None, says(description="why it does not go on, or ended early")]
    cost: Annotated[LabCost, says(description="of all arms, as planned")]
    spent_minutes: float
    arms: Annotated[tuple[LabArm, ...], says(description="in the order in which they are run, the control first")]
    rows: Annotated[
        tuple[LabRow, ...], says(description="the control, then by size; one that has not ended has no figures")
    ]
    not_measured: tuple[NotMeasured, ...]
    control: Annotated[Points | None, says(description="the control's score, in points")]
    case_points: float = page_only  # what one case is worth

    @property
    def n_done(self) -> int:
        return sum(arm.n_done for arm in self.arms)

    @property
    def is_planned(self) -> bool:
        return self.status == "planned"
