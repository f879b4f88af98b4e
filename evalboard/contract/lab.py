"""The lab: experiments, what their arms cost and came to, and what is said of each source of variance."""

from typing import Annotated, Any

from evalboard.contract.base import (
    Contract,
    Count,
    Id,
    Instant,
    Number,
    PageAddress,
    Points,
    Range,
    page_only,
    says,
)
from evalboard.contract.lab_kinds import SOURCES, STEP, FieldReach, FieldState, State, StepAnswer
from evalboard.contract.parts import BucketNamed, Pause, name_version
from evalboard.contract.run import SuiteNamed

KINDS = ("variance", "bisect")
STATUSES = ("planned", "running", "finished", "stopped", "cancelled", "failed")
ARM_STATUSES = ("waiting", "running", "finished", "cut", "failed", "missing")

SourceName = Annotated[str, says(enum=tuple(map(str, SOURCES)))]
Interval = Annotated[tuple[float, float], says(minItems=2, maxItems=2, description="95 %, in points")]


class ArmCost(Contract):
    """What arms take, as it was estimated. Null: no earlier run says it."""

    n_runs: Annotated[int, says(minimum=0, description="passes over the suite")]
    n_starts: Annotated[int, says(minimum=0, description="of engines")]
    tokens: float | None
    minutes: float | None


class LabCost(ArmCost):
    """What arms take. Null: no earlier run says it."""

    tokens: Count | None
    minutes: Annotated[float | None, says(minimum=0, description="of engines at work, starts included")]


class LabArm(Contract):
    """One condition or step: an ordinary run, or with no runs what is computed from the control's texts."""

    source: Annotated[str, says(enum=(*map(str, SOURCES), STEP))]
    name: Annotated[str, says(description="what tells it from other arms of its source")]
    endpoint: str
    status: Annotated[str, says(enum=ARM_STATUSES)]
    run: Id | None
    n_done: Annotated[int, says(minimum=0, description="passes that have ended")]
    cost: Annotated[LabCost, says(description="as it was planned")]
    spent_minutes: float
    problem: str | None
    profile: Annotated[str | None, says(description="of its run, with its version")]
    bucket: Annotated[BucketNamed | None, says(description="that served its run, or most of it")]


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
    is_sd_open: Annotated[bool | None, says(description="heavy tails: `sd_interval` ends there at least")]
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


class FieldFinding(Contract):
    """One field: which flips it makes alone, and which go when it alone is undone. Null: that was not tried."""

    name: str
    state: Annotated[str, says(enum=tuple(map(str, FieldState)))]
    n_made: Annotated[Count | None, says(description="flips that come where it alone is the candidate's")]
    n_undone: Annotated[Count | None, says(description="flips that go where it alone is the baseline's")]


class BisectField(FieldFinding):
    """One thing that differs between the two runs, and what it made alone. Null: it was not, or not yet, tried so."""

    label: Annotated[str, says(description="the field, for people")]
    baseline: str
    candidate: str
    reach: Annotated[str, says(enum=tuple(map(str, FieldReach)), description="whether it can be set, and where")]
    finding: Annotated[str, says(description="the state, for people")]
    note: Annotated[str, says(description="what else is to be known of it, for people; may be empty")]
    points: Annotated[float | None, says(description="by how many it alone moves the chosen cases' score")]
    n_steps: Annotated[int, says(minimum=0, description="that tried it alone and have ended")]


class BisectCase(Contract):
    """A case that tells: where the two runs' answers to it part."""

    case: str
    unit: Annotated[str, says(enum=("token", "text"), description="what `position` counts")]
    position: Annotated[int, says(minimum=0, description="the first that differs, in tokens or characters")]
    token_baseline: Annotated[
        str | None, says(description="what stands there, as pages draw a token; null where the answer had ended")
    ]
    token_candidate: Annotated[str | None, says(description="likewise, of the candidate's answer")]
    movement: Annotated[float | None, says(description="of the logits there, in nats")]
    score_baseline: Points | None
    score_candidate: Points | None
    is_chance: Annotated[
        bool, says(description="decodings of one side as it was disagree, so that it is left out of every step")
    ]
    is_reproduced: Annotated[bool | None, says(description="both sides as they were gave their answers again")]
    url: PageAddress


class BisectStep(Contract):
    """The chosen cases decoded with some fields at the candidate's values, and the others at the baseline's."""

    turned: Annotated[tuple[str, ...], says(description="names of the fields at the candidate's values")]
    label: str
    run: Id | None
    status: Annotated[str, says(enum=ARM_STATUSES)]
    shown: Annotated[
        tuple[Annotated[str, says(enum=tuple(map(str, StepAnswer)))], ...],
        says(description="whose answer came, by case and up to where the two part; empty until the step has ended"),
    ]
    n_candidate: Annotated[Count | None, says(description="flips that came, of those reproduced")]
    points: Annotated[float | None, says(description="from the baseline's score of the chosen cases")]
    n_beside_moved: Annotated[Count | None, says(description="cases beside them that came with another text")]


class BisectBlamed(Contract):
    """Fields that make flips and, undone, remove them: one, or several that do so only together.

    `is_either`: each makes them alone, and only all of them undone remove them.
    """

    fields: tuple[str, ...]
    n_cases: Number
    is_either: bool


class BisectSide(Contract):
    """One of the two runs that a bisect is about: what was asked, what served it, and what it scored."""

    side: Annotated[str, says(enum=("baseline", "candidate"))]
    run: Id
    endpoint: str
    profile: Annotated[str, says(description="with its version")]
    finished_at: Instant | None
    score: Annotated[Points | None, says(description="of the pass that is bisected, when it was planned")]
    bucket: Annotated[BucketNamed | None, says(description="that served most of it")]


class Bisect(Contract):
    """Which of the fields that differ between two runs makes their answers part."""

    baseline: Id
    candidate: Id
    sides: Annotated[
        tuple[BisectSide, ...], says(description="the baseline, then the candidate; one that was deleted is not there")
    ]
    points: Annotated[float | None, says(description="from the baseline's score to the candidate's, pass against pass")]
    n_flips: Annotated[int, says(minimum=0, description="cases whose answers differ")]
    n_reproduced: Annotated[Count | None, says(description="chosen cases that both sides as they were gave again")]
    n_decodings: Annotated[
        int, says(minimum=1, description="of each step; several where a side's answers may change by chance")
    ]
    n_unexplained: Annotated[int, says(minimum=0, description="of these, those that no set of fields explains")]
    n_beside: Annotated[int, says(minimum=0, description="cases that did not differ and are decoded beside them")]
    blamed: tuple[BisectBlamed, ...]
    fields: Annotated[tuple[BisectField, ...], says(description="what is blamed first, what is not reachable last")]
    cases: tuple[BisectCase, ...]
    steps: Annotated[
        tuple[BisectStep, ...], says(description="the baseline and what is turned from there, then the candidate's end")
    ]
    there: tuple[str, ...] = page_only  # of the two runs, those that were not deleted since


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
    settings: Annotated[dict[str, Any] | None, says(description="of the profile that all else is pinned by")]
    temperature: Annotated[float | None, says(description="at which the sampler is let go")]
    cost: Annotated[LabCost, says(description="of all arms, as planned")]
    spent_minutes: float
    arms: Annotated[tuple[LabArm, ...], says(description="in the order in which they are run, the control first")]
    rows: Annotated[
        tuple[LabRow, ...], says(description="the control, then by size; one that has not ended has no figures")
    ]
    not_measured: tuple[NotMeasured, ...]
    control: Annotated[Points | None, says(description="the control's score, in points")]
    bisect: Annotated[Bisect | None, says(description="of the kind `bisect`, whose `rows` are empty")]
    pause: Annotated[Pause | None, says(description="while the endpoint of its runs is paused")]
    case_points: Annotated[float | None, says(description="what one case of the suite is worth, in points")]

    @property
    def n_done(self) -> int:
        return sum(arm.n_done for arm in self.arms)

    @property
    def is_planned(self) -> bool:
        return self.status == "planned"
