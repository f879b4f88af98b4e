"""A release as pages and the API show it: the verdict on its present inputs, and how it came to it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from evalboard.core.draws import Draws

Span = tuple[float, float]  # low and high, in points


@dataclass(frozen=True, slots=True)
class Line:
    """A reason, a warning or a next step: a code of docs/verdict.md and a sentence. `gate`: its position, or None."""

    code: str
    text: str
    gate: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSide:
    """One side of a gate. `points` by repeat of the look, None where a repeat is not whole.

    noise_points: what one repeat's score moves by flips alone, a standard deviation. range5_points: the range that
    five repeats have, whatever the number that was run. n_buckets is the run's, and so are the fields after it.
    """

    run_id: int
    model_name: str
    endpoint: str
    profile: str
    status: str
    n_repeats: int
    points: tuple[float | None, ...]
    score: float | None
    range: Span | None
    interval: Span | None
    noise_points: float | None
    is_baseline_expired: bool
    disagreement_rate: float | None = None
    n_unstable: int | None = None
    range5_points: float | None = None
    n_buckets: int = 1
    batch_class: str = ""
    fingerprint_digest: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    profile_slug: str = ""
    profile_version: int = 0
    draws: Draws = field(default_factory=Draws)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """One suite of a release. Everything in points; None where the data cannot say.

    `interval` of the paired change has level `level`; `reach` is the one for other cases like these. `expected`: the
    interval to expect with `expected_repeats` a side. `cases_needed`: repeats → cases with which the policy could
    settle this. `method`: `flips`, or `runs` where whole runs move by more than flips explain. `n_groups` of cases, and
    whether the change is concentrated in too few of them to say anything of other cases. `missing_share` of the cases.
    """

    position: int
    suite: str
    suite_version: int
    suite_digest: str
    n_cases: int
    n_cases_judged: int
    tier: str
    verdict: str
    reasons: tuple[Line, ...]
    warnings: tuple[Line, ...]
    baseline: GateSide
    candidate: GateSide
    difference: float | None
    interval: Span | None
    level: float | None
    reach: Span | None
    reach_level: float | None
    resolution_points: float | None
    resolution_elsewhere_points: float | None
    points_per_case: float
    tolerance_points: float
    guard_points: float | None
    look: int | None
    repeats_needed: int | None
    expected: Span | None
    expected_repeats: int | None
    cases_needed: dict[int, int]
    leaning: str | None
    n_fixed: int
    n_broken: int
    n_unstable: int
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    is_worth_a_look: bool
    method: str = ""
    n_groups: int | None = None
    is_concentrated: bool = False
    missing_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignOffLine:
    """`void`: why it no longer holds, "" where it does."""

    id: int
    person: str
    decision: str
    note: str
    expires_at: datetime | None
    created_at: datetime
    input_digest: str
    made_with: str
    digest: str
    void: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryLine:
    """One thing that happened to a release: created, decided, repeats added, signed; newest last."""

    at: datetime
    code: str
    text: str
    person: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlePlan:
    """What settling would cost: repeats to add to each run, interleaved. `minutes` None where no speed is known.

    `runs`: (run, how many more). `refused`: why it cannot be done as things are, "" where it can.
    """

    look: int
    n_responses: int
    runs: tuple[tuple[int, int], ...]
    minutes: float | None
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRow:
    """A release in lists. `outcome`: unsigned, approved, rejected, waived, expired (a waiver) or void."""

    id: int
    verdict: str
    outcome: str
    summary: str
    suites: tuple[str, ...]
    candidate: str
    baseline: str
    candidate_run: int
    baseline_run: int
    policy: str
    treatment: str
    labels: dict[str, Any]
    difference: float | None
    interval: Span | None
    tolerance_points: float | None
    created_at: datetime
    decided_at: datetime | None
    created_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseReport:
    """The release page. `settle` is None where repeats would not help or some are under way (`settling`)."""

    row: ReleaseRow
    headline_gate: int
    reasons: tuple[Line, ...]
    warnings: tuple[Line, ...]
    next_steps: tuple[Line, ...]
    gates: tuple[GateReport, ...]
    policy_title: str
    policy_version: int
    policy_settings: dict[str, Any]
    input_digest: str
    candidates_tried: int
    settle: SettlePlan | None
    settling: str
    sign_offs: tuple[SignOffLine, ...]
    story: tuple[StoryLine, ...]
    policy_name: str = ""
