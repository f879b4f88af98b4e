"""Releases: a candidate judged on one or more suites, and signed."""

import math
from typing import Annotated

from evalboard.contract.base import (
    Contract,
    Count,
    Digest,
    Id,
    Instant,
    Labels,
    Note,
    Number,
    PageAddress,
    Points,
    Range,
    RunStatus,
    Severity,
    Share,
    optional,
    page_only,
    says,
)
from evalboard.contract.compare import Computation
from evalboard.contract.parts import ByChance, Cost, InEveryRepeat, ProfileNamed, name_version
from evalboard.contract.run import Draws
from evalboard.contract.treatments import PairBy, Terms, Treatment

Span = tuple[float, float]  # low and high, in points

VERDICTS = ("ship", "no_ship", "inconclusive", "not_comparable")
CASES = ALL_CASES, NOISIEST_CASES = ("all", "noisiest")  # what repeats that settle a release are of
CAUSES = ("server", "prompts", "noise", "missing", "identity")  # that could explain a result beside the candidate
CAUSE_STATES = ("ok", "doubt", "no", "unknown")
OUTCOMES = ("unsigned", "approved", "rejected", "waived", "expired", "void")

Word = Annotated[str, says(enum=VERDICTS)]
Outcome = Annotated[str, says(enum=OUTCOMES)]
Side = Annotated[str, says(enum=("baseline", "candidate"))]
Tier = Annotated[str, says(enum=("critical", "advisory"))]
ReleaseActor = Annotated[str, says(enum=("author", "operator", "signer"))]
GateNamed = Annotated[int | None, says(minimum=0, description="index of its gate; null for all")]

NOISE_Z = 1.96  # standard deviations: 95 % of what noise does


class SideNamed(Contract):
    run: Id
    model: str


PairedBy = Annotated[PairBy, says(description="how cases are paired, where the prompt is judged")]


class ReleaseRow(Contract):
    """A release in a list; the numbers are those of its headline gate."""

    id: Id
    verdict: Word | None
    outcome: Outcome
    summary: str
    suites: tuple[str, ...]
    candidate: SideNamed
    baseline: SideNamed
    policy: str
    treatment: Treatment
    pair_by: PairedBy
    difference: float | None
    low: float | None
    high: float | None
    tolerance_points: float | None
    labels: Labels
    created_by: str | None
    created_at: Instant
    decided_at: Instant | None
    url: PageAddress

    @property
    def terms(self) -> Terms:
        return Terms(self.treatment, self.pair_by)

    @property
    def interval(self) -> Span | None:
        """Return the interval of the change in points."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class SignedOff(Contract):
    """A person's decision on a verdict."""

    id: Id
    person: str
    decision: Annotated[str, says(enum=("approve", "reject", "waive"))]
    note: str
    expires_at: Instant | None
    created_at: Instant
    input_digest: Digest
    made_with: Annotated[str | None, says(description="names the token or session")]
    digest: Digest


class SignOff(SignedOff):
    """A person's decision on a verdict, as the release has it."""

    void: Annotated[str | None, says(description="why it is void; null while valid")]


class PolicyNamed(Contract):
    name: str
    version: Number


class SignOffLine(SignedOff):
    """One sign-off of the export. `problem`: why the chain or its verdict is invalid; null if valid."""

    release: Id
    verdict: Word
    policy: PolicyNamed
    version: Number
    verdict_digest: Digest | None
    evidence_digest: Annotated[Digest | None, says(description="digest of the gates' evidence, as in the bundle")]
    previous_digest: Digest
    is_intact: bool
    problem: str | None


class Finding(Note):
    """A reason or a step: `code` is stable, `text` is one sentence."""

    gate: GateNamed


class NextStep(Finding):
    """A step. `sides`: which of both it runs again, or is about."""

    sides: tuple[Side, ...]
    block: Annotated[
        str | None, says(description="the reason that it undoes, where that keeps the sides from comparison")
    ]


class GateWarning(Note):
    """A warning of a release: `code` is stable, `text` is one sentence."""

    severity: Annotated[
        Severity,
        says(description="`warning`: its cause could change the verdict; `info`: it could not"),
    ]
    must_act: Annotated[
        ReleaseActor | None,
        says(
            description="`author`: who asked for the release or its runs, or made the suite; `operator`: who runs"
            " workers, engines and endpoints; `signer`: who signs, and has to weigh it; null: nothing is to be done"
        ),
    ]


class ReleaseWarning(GateWarning):
    """A warning of a release: `code` is stable, `text` is one sentence."""

    gate: GateNamed
    run: Id | None = page_only  # that it is about, where it is about one
    alike: str = page_only  # the same text for warnings that say the same of other runs or suites


class OtherCause(Contract):
    """Whether something other than the candidate could explain the result."""

    code: Annotated[
        str,
        says(
            enum=CAUSES,
            description="`server`: one server answered both sides; `prompts`: and the same questions; `noise`: it is"
            " ruled out; `missing`: no answer is missing; `identity`: who answered is attested",
        ),
    ]
    state: Annotated[
        str,
        says(
            enum=CAUSE_STATES, description="`ok`: it explains nothing; `doubt`: it may; `no`: it does, or would decide"
        ),
    ]
    text: str
    because: Annotated[
        tuple[str, ...], says(description="the codes of reasons and warnings that decide, the gravest first")
    ]


class PolicyOfRelease(Contract):
    name: str
    version: Number
    title: str
    rule: str
    tolerance_points: float
    guard: Annotated[float | None, says(description="null if the policy has none")]

    @property
    def label(self) -> str:
        return name_version(self.name, self.version)


class Reach(Contract):
    """The interval for other cases like these."""

    low: float
    high: float
    level: float | None
    n_groups: Count | None
    is_concentrated: bool

    @property
    def interval(self) -> Span:
        return self.low, self.high


class ReachInterval(Reach):
    """The same with all that a verdict's document has of it; points.

    resolution_points: the smallest change there that so many cases tell from the luck of drawing them.
    design_effect: how many times the variance is what it would be if the cases of a group were independent.
    """

    n_groups_changed: Annotated[int, says(minimum=0, description="groups with a changed case")]
    design_effect: float
    resolution_points: float
    is_uneven: Annotated[
        bool | None, says(description="a group is so large that the interval's reliability is not known")
    ] = optional


class Expected(Contract):
    """The interval to expect with so many repeats a side."""

    repeats: Number | None
    low: float
    high: float

    @property
    def interval(self) -> Span:
        return self.low, self.high


class EarlyLean(Contract):
    """Experimental: the change's interval by the noise of earlier runs and margins. It decides nothing."""

    low: float
    high: float
    level: Share
    leaning: Annotated[str, says(description="`ship`, `no_ship` or `none`")]


class TargetedRepeats(Contract):
    """Repeats of only the cases most likely to flip, per side."""

    repeats: Number
    n_cases: Count


class TargetedSettling(TargetedRepeats):
    """Further repeats of only these cases, and the chance that they decide."""

    chance: Share


class NoiseOfSide(Contract):
    disagreement_rate: float | None
    sd_points: float | None
    n_unstable: Count | None


class MeasuredNoise(NoiseOfSide):
    """The same with all that a verdict's document has of it."""

    range5_points: float | None
    is_overdispersed: bool


class GateSide(ProfileNamed, Contract):
    run: Id
    model: str
    endpoint: str
    profile: str
    profile_version: Number
    status: RunStatus
    n_repeats: Count
    score: Points | None
    repeats: Annotated[tuple[Points | None, ...], says(description="the judged cases")]
    interval: Range | None
    noise: NoiseOfSide
    is_baseline_expired: bool
    cost: Annotated[Cost | None, says(description="of the run; null: its endpoint has no price")]
    n_buckets: int = page_only  # that served the run
    draws: Draws = page_only
    is_log: bool = page_only  # read from another tool's log, so that nothing here can run it again

    @property
    def run_id(self) -> int:
        return int(self.run)


class CasesChanged(Contract):
    n_fixed: Count
    n_broken: Count
    n_unstable: Count
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    broken_by_chance: ByChance | None = optional
    fixed_by_chance: ByChance | None = optional
    is_in_every_repeat: InEveryRepeat | None = optional


class Outlook(Contract):
    """What further repeats would do; null if they would not decide."""

    repeats_needed: Number | None
    settling_chance: Annotated[Share | None, says(description="chance that so many repeats decide it")]
    targeted_settling: Annotated[
        TargetedSettling | None, says(description="null if repeats of chosen cases would hardly decide it")
    ]
    expected: Expected | None
    leaning: str | None
    early_lean: Annotated[
        EarlyLean | None, says(description="before the first look, if earlier runs measured the noise")
    ]


class Gate(Outlook):
    """A suite of a release: the change in points, with its interval `low` to `high` at its own `level`."""

    suite: str
    suite_version: Number
    tier: Tier
    verdict: Word | None
    reasons: tuple[Note, ...]
    warnings: tuple[GateWarning, ...]
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
    metric: Annotated[
        str | None, says(description="the deciding metric: mean, pass@k or pass^k; null before a verdict")
    ]
    resolution_points: float | None
    resolution_elsewhere_points: float | None
    look: Number | None
    targeted: Annotated[
        TargetedRepeats | None, says(description="repeats of chosen cases that count in addition to the look's")
    ]
    cases_needed: dict[str, int]
    n_cases: Count
    n_cases_judged: Count
    changed: CasesChanged
    is_worth_a_look: bool
    order: Annotated[
        tuple[Side, ...] | None,
        says(description="the side of each repeat, in order of their end; null if a side is from a log"),
    ]
    is_in_turn: Annotated[bool | None, says(description="both sides were interleaved; null if the order is not known")]
    computation: Annotated[
        Computation | None,
        says(description="of the comparison of both runs; null while it is made, or without one"),
    ] = None
    position: int = page_only
    treatment: str = page_only  # of the release, as pair_by
    pair_by: str = page_only
    suite_digest: str = page_only

    @property
    def run_ids(self) -> tuple[int, int]:
        return self.baseline.run_id, self.candidate.run_id

    @property
    def terms(self) -> Terms:
        """The terms on which its runs are compared."""
        return Terms(self.treatment, self.pair_by) if self.treatment else Terms()

    @property
    def interval(self) -> Span | None:
        """Return the interval of the change in points."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def new_cases(self) -> Reach | None:
        """Return the interval for new cases; None as well where too few groups changed to estimate them."""
        return None if self.reach is None or self.reach.is_concentrated else self.reach

    @property
    def points_to_spare(self) -> float | None:
        """Return how far the interval is from the limit, 0 if it includes it; None if not measured."""
        if self.low is None or self.high is None:
            return None
        limit = -self.tolerance_points
        return max(self.low - limit, limit - self.high, 0.0)

    @property
    def points_of_noise(self) -> float | None:
        """Return how far noise moves the change, 95 % of the time; None if a side is not measured."""
        parts = [(side.noise.sd_points, side.n_repeats) for side in (self.baseline, self.candidate)]
        if any(sd is None or not n for sd, n in parts):
            return None
        return NOISE_Z * math.sqrt(math.fsum((sd or 0.0) ** 2 / n for sd, n in parts))

    @property
    def computation_text(self) -> str:
        """Return whether the sides' logprobs agree, "" if unknown."""
        known = self.computation
        return "" if known is None or known.answer == "unknown" else known.text

    @property
    def points_per_case(self) -> float:
        return 100 / self.n_cases

    @property
    def sides(self) -> tuple[tuple[str, GateSide, Span | None], ...]:
        """Return both sides with their names and the ranges of their repeats, the baseline first."""
        return (("baseline", self.baseline, self.range_baseline), ("candidate", self.candidate, self.range_candidate))


class RepeatsToAdd(Contract):
    run: Id
    n_more: Number
    n_chosen: Annotated[int | None, says(description="number of their cases; null: all")]
    n_before: int = page_only

    @property
    def run_id(self) -> int:
        return int(self.run)


Cases = Annotated[str, says(enum=CASES)]


class SettlePlan(Contract):
    """The cost of deciding a release.

    POST `look`, `n_responses` and, as `cases`, `chosen` back to agree.
    """

    look: Annotated[Number, says(description="repeats of all cases per side")]
    chosen: Cases
    chance: Annotated[Share | None, says(description="chance that it decides every open suite; null if not known")]
    n_responses: Count
    runs: tuple[RepeatsToAdd, ...]
    minutes: float | None
    refused: Annotated[str | None, says(description="why they cannot be added now")]


class Settle(Contract):
    """How further repeats can decide a release."""

    plan: Annotated[SettlePlan | None, says(description="null if further repeats would not help, or are running")]
    targeted: Annotated[
        SettlePlan | None, says(description="plan with repeats of only the cases most likely to flip; null like `plan`")
    ]
    settling: Annotated[str | None, says(description="the repeats in progress")]


class StoryLine(Contract):
    """An event of a release: `created`, `decided`, `settling` or `signed`."""

    at: Instant
    code: str
    text: str
    person: str = ""
    summary: str = ""  # of the verdict that was taken
    runs: tuple[int, ...] = ()  # that got repeats


class Release(Contract):
    """A release with the verdict on its present inputs, whose digest is `input_digest`."""

    id: Id
    verdict: Word | None
    outcome: Annotated[
        Outcome,
        says(description="of its newest sign-off; `expired`: the waiver ended; `void`: the inputs changed"),
    ]
    reasons: tuple[Finding, ...]
    summary: str
    summary_bold: tuple[int, int] | None = page_only  # from where to where a page sets it in bold
    next: tuple[NextStep, ...]
    headline_gate: Count
    gates: tuple[Gate, ...]
    policy: PolicyOfRelease
    treatment: Treatment
    pair_by: PairedBy
    input_digest: Digest | None
    candidates_tried: Annotated[
        int, says(minimum=0, description="runs judged against this baseline up to this release")
    ]
    settle: Annotated[SettlePlan | None, says(description="null if further repeats would not help, or are running")]
    settle_targeted: Annotated[
        SettlePlan | None,
        says(description="plan with repeats of only the cases most likely to flip; null like `settle`"),
    ]
    settling: Annotated[str | None, says(description="the repeats in progress")]
    signoffs: tuple[SignOff, ...]
    warnings: tuple[ReleaseWarning, ...]
    other_causes: tuple[OtherCause, ...]
    labels: Labels
    created_by: str | None
    created_at: Instant
    decided_at: Instant | None
    url: PageAddress
    story: tuple[StoryLine, ...] = page_only  # newest last

    @property
    def terms(self) -> Terms:
        return Terms(self.treatment, self.pair_by)

    @property
    def headline(self) -> Gate:
        """Return the gate that the summary is about."""
        return self.gates[self.headline_gate]

    @property
    def computations(self) -> tuple[str, ...]:
        """Return whether logprobs agree for each gate, with the suite if there are several."""
        known = [(gate.suite, gate.computation_text) for gate in self.gates if gate.computation_text]
        return tuple(text if len(self.gates) == 1 else f"{suite}: {text}" for suite, text in known)

    @property
    def sides(self) -> tuple[GateSide, ...]:
        """Return the sides of all gates, gate by gate, the baseline first; runs may be repeated."""
        return tuple(side for gate in self.gates for side in (gate.baseline, gate.candidate))
