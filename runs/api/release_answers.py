"""What the API answers of baselines and releases, as types; answers.py says how they are used. Null is unknown."""

from typing import Annotated, TypedDict

from runs import models
from runs.api.answers import (
    Address,
    Count,
    Digest,
    FingerprintNamed,
    Id,
    Instant,
    Labels,
    Note,
    Number,
    Points,
    Range,
    RunRow,
    RunStatus,
)
from runs.api.schema_types import says
from runs.selectors.release_list import OUTCOMES

Word = Annotated[str, says(enum=models.Verdict.Word.values)]
Outcome = Annotated[str, says(enum=OUTCOMES)]
Treatment = Annotated[str, says(enum=models.Release.Treatment.values)]


class RotationSeen(TypedDict):
    """The rotation that made a baseline expire."""

    at: Instant
    endpoint: str
    profile: str
    run: Id
    before: FingerprintNamed
    after: FingerprintNamed


class Baseline(TypedDict):
    """A baseline with its run; `expired` is null while it holds."""

    id: Id
    suite: str
    line: str
    profile: str
    run: RunRow
    reason: str
    set_by: str | None
    created_at: Instant
    is_current: bool
    expired: RotationSeen | None


class SideNamed(TypedDict):
    run: Id
    model: str


class ReleaseRow(TypedDict):
    """A release in a list; the numbers are those of its headline gate."""

    id: Id
    verdict: Word | None
    outcome: Outcome
    summary: str
    suites: list[str]
    candidate: SideNamed
    baseline: SideNamed
    policy: str
    treatment: Treatment
    difference: float | None
    low: float | None
    high: float | None
    tolerance_points: float | None
    labels: Labels
    created_by: str | None
    created_at: Instant
    decided_at: Instant | None
    url: Address


class Finding(Note):
    """`gate` is the position of the gate that it is about, null where it is about all."""

    gate: Count | None


class PolicyOfRelease(TypedDict):
    name: str
    version: Number
    title: str
    rule: str
    tolerance_points: float
    guard: float | None


class Reach(TypedDict):
    """The interval for other cases like these."""

    low: float
    high: float
    level: float | None
    n_groups: Count | None
    is_concentrated: bool


class Expected(TypedDict):
    """The interval to expect with so many repeats a side."""

    repeats: Number | None
    low: float
    high: float


class NoiseOfSide(TypedDict):
    disagreement_rate: float | None
    sd_points: float | None
    n_unstable: Count | None


class GateSide(TypedDict):
    run: Id
    model: str
    endpoint: str
    profile: str
    profile_version: Number
    status: RunStatus
    n_repeats: Count
    score: Points | None
    repeats: list[Points | None]
    interval: Range | None
    noise: NoiseOfSide
    is_baseline_expired: bool


class CasesChanged(TypedDict):
    n_fixed: Count
    n_broken: Count
    n_unstable: Count
    fixed: list[str]
    broken: list[str]


class Gate(TypedDict):
    """One suite of a release: the change in points, with its interval `low` to `high` of level `level`."""

    suite: str
    suite_version: Number
    tier: Annotated[str, says(enum=models.Gate.Tier.values)]
    verdict: Word | None
    reasons: list[Note]
    warnings: list[Note]
    difference: float | None
    low: float | None
    high: float | None
    level: float | None
    reach: Reach | None
    range_baseline: Range | None
    range_candidate: Range | None
    baseline: GateSide
    candidate: GateSide
    tolerance_points: float
    guard_points: float | None
    resolution_points: float | None
    resolution_elsewhere_points: float | None
    look: Number | None
    repeats_needed: Number | None
    expected: Expected | None
    cases_needed: dict[str, int]
    leaning: str | None
    n_cases: Count
    n_cases_judged: Count
    changed: CasesChanged
    is_worth_a_look: bool


class RepeatsToAdd(TypedDict):
    run: Id
    n_more: Number


class SettlePlan(TypedDict):
    """What settling would cost; POST `look` and `n_responses` back to agree to it."""

    look: Number
    n_responses: Count
    runs: list[RepeatsToAdd]
    minutes: float | None
    refused: str | None


class Settle(TypedDict):
    """`plan` is null where repeats would not help; `settling` says what is under way."""

    plan: SettlePlan | None
    settling: str | None


class SignOff(TypedDict):
    """`void` says why it no longer holds, null where it does. `made_with` names the token or session."""

    id: Id
    person: str
    decision: Annotated[str, says(enum=models.SignOff.Decision.values)]
    note: str
    expires_at: Instant | None
    created_at: Instant
    input_digest: Digest
    made_with: str | None
    digest: Digest
    void: str | None


class Release(TypedDict):
    """A release with the verdict on its present inputs, which `input_digest` stands for."""

    id: Id
    verdict: Word | None
    outcome: Outcome
    reasons: list[Finding]
    summary: str
    next: list[Finding]
    headline_gate: Count
    gates: list[Gate]
    policy: PolicyOfRelease
    treatment: Treatment
    input_digest: Digest | None
    candidates_tried: Count
    settle: SettlePlan | None
    settling: str | None
    signoffs: list[SignOff]
    warnings: list[Finding]
    labels: Labels
    created_by: str | None
    created_at: Instant
    decided_at: Instant | None
    url: Address
