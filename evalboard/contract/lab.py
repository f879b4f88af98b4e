"""The lab: experiments, the cost and results of their conditions, and the finding for each source."""

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
from evalboard.contract.parts import BucketNamed, Cost, CostEstimate, Pause, ProfileNamed
from evalboard.contract.run import RunCost, SuiteNamed

KINDS = ("variance", "bisect")
STATUSES = ("planned", "running", "finished", "stopped", "cancelled", "failed")
ARM_STATUSES = ("waiting", "running", "finished", "cut", "failed", "missing")

SourceName = Annotated[str, says(enum=tuple(map(str, SOURCES)))]
Interval = Annotated[tuple[float, float], says(minItems=2, maxItems=2, description="95 % interval, in points")]


class LabCost(RunCost):
    """The cost of conditions. Null: no earlier run to estimate from."""

    tokens: Count | None
    minutes: Annotated[float | None, says(minimum=0, description="engine minutes, including starts")]


class LabArm(Contract):
    """A condition or step: an ordinary run, or with no runs a computation on the control's texts."""

    source: Annotated[str, says(enum=(*map(str, SOURCES), STEP))]
    name: Annotated[str, says(description="distinguishes it from other conditions of its source")]
    endpoint: str
    status: Annotated[str, says(enum=ARM_STATUSES)]
    run: Id | None
    n_done: Annotated[int, says(minimum=0, description="passes that have ended")]
    cost: Annotated[LabCost, says(description="as planned")]
    spent_minutes: float
    problem: str | None
    profile: Annotated[str | None, says(description="the run's profile, with its version")]
    bucket: Annotated[BucketNamed | None, says(description="the bucket that answered most of its run")]


class LabPoint(Contract):
    """One pass of a condition, or one way to score the control's texts.

    `repeat` null: nothing was decoded for it.
    """

    score: Points
    run: Id | None
    repeat: Number | None
    name: str


class LabRow(Contract):
    """A table row: a source, and how much varying it moves the score."""

    source: SourceName
    name: str
    label: Annotated[str, says(description="the source's label")]
    condition: Annotated[str, says(description="what is varied, as text")]
    fixed_by: Annotated[str, says(description="what keeps the score fixed, as text")]
    state: Annotated[str, says(enum=tuple(map(str, State)))]
    finding: Annotated[str, says(description="the state, as text")]
    n_runs: Annotated[int, says(minimum=0, description="passes, or ways to score")]
    points: tuple[LabPoint, ...]
    reach: Annotated[float | None, says(description="half of the range including the control's score: ± points")]
    at_most: Annotated[float | None, says(description="half of the largest range not ruled out: ± points")]
    range: Annotated[Range | None, says(description="lowest and highest score, in points")]
    range_interval: Annotated[
        Interval | None, says(description="interval of the mean range of as many runs; null if not sampled")
    ]
    sd: float | None
    sd_interval: Interval | None
    is_sd_open: Annotated[bool | None, says(description="heavy tails: the upper end of `sd_interval` is a lower bound")]
    shift: Annotated[float | None, says(description="difference from the control's score, if all scores are equal")]
    n_same: Annotated[Count | None, says(description="passes equal to the control's first one, to the bit")]
    n_responses: Annotated[int, says(minimum=0, description="responses that are compared with the control's")]
    n_flipped: Annotated[int, says(minimum=0, description="those of them with another text")]
    first_flip: Annotated[Count | None, says(description="the median position where these diverge, in tokens from 0")]
    speed: Annotated[float | None, says(description="tokens per second, relative to the control")]

    @property
    def width(self) -> float | None:
        return None if self.range is None else self.range[1] - self.range[0]


class NotMeasured(Contract):
    """A source that is not measured here: `code` is stable, `reason` is a sentence."""

    source: SourceName
    label: str
    code: str
    reason: str


class FieldFinding(Contract):
    """A field: flips that changing only it makes, and that undoing only it removes. Null: not tried."""

    name: str
    state: Annotated[str, says(enum=tuple(map(str, FieldState)))]
    n_made: Annotated[Count | None, says(description="flips reproduced with only this field from the candidate")]
    n_undone: Annotated[Count | None, says(description="flips undone with only this field from the baseline")]


class BisectField(FieldFinding):
    """A difference between the two runs, and what it explains. Null: not tried, or not yet."""

    label: Annotated[str, says(description="the field's label")]
    baseline: str
    candidate: str
    reach: Annotated[str, says(enum=tuple(map(str, FieldReach)), description="whether it can be set, and where")]
    finding: Annotated[str, says(description="the state, as text")]
    note: Annotated[str, says(description="a note; may be empty")]
    points: Annotated[float | None, says(description="change of the chosen cases' score by only this field, in points")]
    n_steps: Annotated[int, says(minimum=0, description="finished steps that changed or undid only this field")]


class BisectCase(Contract):
    """A case where the two runs' answers diverge."""

    case: str
    unit: Annotated[str, says(enum=("token", "text"), description="what `position` counts")]
    position: Annotated[int, says(minimum=0, description="the first position that differs, in tokens or characters")]
    token_baseline: Annotated[
        str | None, says(description="the token there, made readable; null if the answer had ended")
    ]
    token_candidate: Annotated[str | None, says(description="the candidate's token there")]
    movement: Annotated[float | None, says(description="movement of the logits there, in nats")]
    score_baseline: Points | None
    score_candidate: Points | None
    is_chance: Annotated[
        bool, says(description="decodings of one unchanged side disagree, so it is left out of every step")
    ]
    is_reproduced: Annotated[bool | None, says(description="both unchanged sides reproduced their answers")]
    url: PageAddress


class BisectStep(Contract):
    """The chosen cases decoded with some fields at the candidate's values, others at the baseline's."""

    turned: Annotated[tuple[str, ...], says(description="names of the fields at the candidate's values")]
    label: str
    run: Id | None
    status: Annotated[str, says(enum=ARM_STATUSES)]
    shown: Annotated[
        tuple[Annotated[str, says(enum=tuple(map(str, StepAnswer)))], ...],
        says(description="which side's answer it gave, by case; empty until the step has ended"),
    ]
    n_candidate: Annotated[Count | None, says(description="flips it gave, of those reproduced")]
    points: Annotated[float | None, says(description="difference from the baseline's score on the chosen cases")]
    n_beside_moved: Annotated[Count | None, says(description="control cases whose text changed")]


class BisectBlamed(Contract):
    """Fields that make flips and, undone, remove them: one, or several that do so only together.

    `is_either`: each makes them alone, and only all of them undone remove them.
    """

    fields: tuple[str, ...]
    n_cases: Number
    is_either: bool


class BisectSide(Contract):
    """One of the two runs of a bisect: its settings, its bucket and its score."""

    side: Annotated[str, says(enum=("baseline", "candidate"))]
    run: Id
    endpoint: str
    profile: Annotated[str, says(description="with its version")]
    finished_at: Instant | None
    score: Annotated[Points | None, says(description="of the bisected pass, when planned")]
    bucket: Annotated[BucketNamed | None, says(description="the bucket that answered most of it")]


class Bisect(Contract):
    """Which of the fields that differ between two runs change its answers."""

    baseline: Id
    candidate: Id
    sides: Annotated[
        tuple[BisectSide, ...], says(description="the baseline, then the candidate; deleted runs are left out")
    ]
    points: Annotated[
        float | None, says(description="the candidate's score minus the baseline's, for the bisected pass")
    ]
    n_flips: Annotated[int, says(minimum=0, description="cases whose answers differ")]
    n_reproduced: Annotated[Count | None, says(description="chosen cases that both unchanged sides reproduced")]
    n_decodings: Annotated[int, says(minimum=1, description="decodings per step; several if answers vary by chance")]
    n_unexplained: Annotated[int, says(minimum=0, description="reproduced cases that no set of fields explains")]
    n_beside: Annotated[int, says(minimum=0, description="control cases: they did not differ and are decoded too")]
    blamed: tuple[BisectBlamed, ...]
    fields: Annotated[tuple[BisectField, ...], says(description="causes first, unreachable fields last")]
    cases: tuple[BisectCase, ...]
    steps: Annotated[
        tuple[BisectStep, ...], says(description="steps from the baseline's settings, then those from the candidate's")
    ]
    there: tuple[str, ...] = page_only  # of the two runs, those that were not deleted since


class ExperimentRow(ProfileNamed, Contract):
    """An experiment in a list."""

    id: Id
    kind: Annotated[str, says(enum=KINDS)]
    suite: SuiteNamed
    endpoint: Annotated[str, says(description="the control's endpoint")]
    profile: str
    profile_version: Number
    runs: Annotated[int, says(minimum=1, description="passes over the suite per condition")]
    status: Annotated[str, says(enum=STATUSES)]
    sentence: Annotated[str, says(description="the conclusion so far")]
    budget_minutes: float
    created_by: str | None
    created_at: Instant
    started_at: Annotated[Instant | None, says(description="when the plan was confirmed")]
    finished_at: Instant | None
    url: PageAddress

    @property
    def is_terminal(self) -> bool:
        return self.status in ("finished", "stopped", "cancelled", "failed")


class Experiment(ExperimentRow):
    """An experiment with its plan, and its table so far."""

    problem: Annotated[str | None, says(description="why it is stopped or ended early")]
    settings: Annotated[dict[str, Any] | None, says(description="settings of the profile that stay fixed")]
    temperature: Annotated[float | None, says(description="temperature at which the sampler is tested")]
    cost: Annotated[LabCost, says(description="of all conditions, as planned")]
    spent_minutes: float
    expected_costs: Annotated[
        tuple[CostEstimate, ...],
        says(description="in money, until it has ended; one for each currency, none without a price"),
    ]
    spent_costs: Annotated[tuple[Cost, ...], says(description="of its runs so far, their judges not included")]
    arms: Annotated[tuple[LabArm, ...], says(description="in run order, the control first")]
    rows: Annotated[tuple[LabRow, ...], says(description="the control, then by size; unfinished ones have no figures")]
    not_measured: tuple[NotMeasured, ...]
    control: Annotated[Points | None, says(description="the control's score, in points")]
    bisect: Annotated[Bisect | None, says(description="for kind `bisect`, whose `rows` are empty")]
    pause: Annotated[Pause | None, says(description="set while its endpoint is paused")]
    case_points: Annotated[float | None, says(description="points of one case of the suite")]

    @property
    def n_done(self) -> int:
        return sum(arm.n_done for arm in self.arms)
