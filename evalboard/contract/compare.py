"""Two runs compared: the ledger of causes, what moved, and where responses part.

Margins, gaps and logprobs are in nats, scores and differences in points.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from evalboard.contract.base import (
    Contract,
    Count,
    Digest,
    Id,
    Instant,
    Note,
    Number,
    PageAddress,
    Points,
    Range,
    Share,
    optional,
    page_only,
    says,
)
from evalboard.contract.manifest import MovedField
from evalboard.contract.parts import BucketShare, ByChance, Cost, InEveryRepeat, ProfileNamed, RepeatScored
from evalboard.contract.run import SuiteNamed
from evalboard.contract.trace import Position
from evalboard.contract.treatments import BY_INPUT, PairBy, Terms, Treatment

SIDES = ("baseline", "candidate")

RepeatPair = Annotated[str, says(pattern="^[0-9]+,[0-9]+$")]


class ComparisonProgress(Contract):
    status: Annotated[str, says(enum=("queued", "finished", "failed"))]
    n_done: Count
    n_total: Count
    error: str | None

    @property
    def is_finished(self) -> bool:
        return self.status == "finished"


class Moved(Contract):
    field: str
    baseline: Any
    candidate: Any

    @property
    def is_same(self) -> bool:
        """Return whether both sides are known and equal; unknown values equal nothing."""
        return self.baseline == self.candidate and self.baseline is not None

    @property
    def is_unknown(self) -> bool:
        """Return whether neither side is known, so that no difference can be shown."""
        return self.baseline is None and self.candidate is None

    @property
    def as_field(self) -> MovedField:
        return MovedField(self.field, self.baseline, self.candidate)


class ScoreCompared(Contract):
    baseline: Points | None
    candidate: Points | None
    difference: float | None


class ComparedCounts(Contract):
    n_pairs: Count
    identical: Count
    drift_only: Count
    flipped: Count
    text_only: Count
    missing: Count
    unread: Count
    score_changed: Count
    n_cases: Count
    n_cases_missing: Count
    other_text: Annotated[int | None, says(minimum=0, description="pairs whose texts differ")] = optional
    untraced: Annotated[int | None, says(minimum=0, description="pairs without logprobs on both sides")] = optional
    flipped_score_changed: int = page_only
    n_cases_paired: int = page_only
    n_cases_score_changed: int = page_only


class CaseParts(Contract):
    """All cases, each in one of eight parts, which add up to `counts.n_cases`.

    They are the lists of the compare page. `broken`, `fixed`, `unstable`: by the verdict's rule. They are 0 if several
    buckets answered a side, where no case is judged as a whole. `changed`: of the others, those whose score changed in
    some pair. `other_text`: equal scores, and other texts in some pair. `same_text`: equal scores and texts.
    `unscored`: answered on both sides, and without a score on one. `missing`: without a response on one side, or on
    either: so many are `missing_on_both`.
    """

    broken: Count
    fixed: Count
    changed: Count
    unstable: Count
    other_text: Count
    same_text: Count
    unscored: Count
    missing: Count
    missing_on_both: Count

    @property
    def n_cases(self) -> int:
        """Return how many cases there are."""
        return sum(n for part, n in self if part != "missing_on_both")


class OutcomeCounts(Contract):
    """Numbers of cases; one that broke or was fixed is not unstable.

    *_by_chance: null if a side has one repeat, or if `is_in_every_repeat`.
    """

    broken: Count
    fixed: Count
    unstable: Count
    broken_by_chance: ByChance | None = optional
    fixed_by_chance: ByChance | None = optional
    is_in_every_repeat: InEveryRepeat | None = optional


class CausePoints(Contract):
    """What one cause changed in the score: `points` is `gained` plus `lost`, which is at most 0."""

    cause: str
    n_cases: Annotated[int, says(minimum=0, description="cases whose score the cause changed in any repeat")]
    points: float
    gained: float
    lost: float
    noise: Annotated[
        Points | None, says(description="up to how much noise moves the score by these cases, as in `noise_share`")
    ] = optional


class LedgerPart(CausePoints):
    """A numeric cause within a cause that only says who answered; the parts add up to their line.

    `confounded`: pairs whose sides are known to differ in more than the cause.
    """

    shown: Annotated[float | None, says(description="to one decimal, so that the shown numbers add up")]


class LedgerLine(LedgerPart):
    """One cause's part of the difference.

    The lines add up to `score.difference`, and there are none without it.
    """

    parts: tuple[LedgerPart, ...] | None
    n_pairs: int = page_only  # of this cause, whether a score moved or not


class NoiseShare(Contract):
    """How much of the difference is noise, in points.

    `up_to`: noise alone moves it by no more, either way, `level` of the time. `beyond`: the least that is not noise,
    0 where all may be. Both are null where nothing measured noise.
    """

    up_to: Points | None
    beyond: float | None
    level: Share
    reason: (
        Annotated[str, says(enum=("left_out", "copies", "one_draw", "one_repeat"), description="why it is not known")]
        | None
    )
    text: str


class OneComputation(Contract):
    """Whether both sides computed the same: the same weights and kernels.

    `apart`: repeats never differ and the sides do, by no more than rounding may do elsewhere. `chance` is the
    probability of so large a distance if both computed the same, null where no test was needed or possible. `shift` is
    how far the sides differ beyond noise, in nats, `noise` how far repeats of one side do, `floor` the rounding that is
    assumed if that decides. `n_positions` are of the answers that the stacks of both sides have scored; null if what
    was decoded was compared. `n_differing` are the cases in which anything differs, as far as they were read.
    `n_unexplained` are cases in which a token was chosen that the logprobs do not explain; 0 if they are fewer than 3,
    or 1 % of those judged. `n_strays_*` are responses from another build, which are left out.
    """

    answer: Annotated[str, says(enum=("one", "two", "apart", "unknown"))]
    is_steady: Annotated[bool, says(description="each side's repeats are equal to the bit, so a single bit decides")]
    n_cases: Count
    n_apart: Count
    chance: float | None
    shift: float | None
    noise: float | None
    floor: float | None = None
    n_positions: int | None = None
    n_differing: int | None = None
    n_unexplained: int | None = None
    n_strays_baseline: int | None = None
    n_strays_candidate: int | None = None


class Computation(OneComputation):
    """The same for the main bucket of each side. `is_one_bucket`: both sides have the same one."""

    is_one_bucket: bool
    text: str


class LargerShifts(Contract):
    """Cases whose logits moved more than noise explains, of those readable (docs/divergence.md)."""

    n_cases: Count
    n_read: Count
    n_established: Count
    text: str | None


class NumericNoise(Contract):
    sd: float
    near: float
    ulp: float | None
    is_assumed: bool
    dtype: str | None
    capped_from: Annotated[
        float | None, says(description="the measured noise, if above the cap of three floors of the dtype; else null")
    ]
    text: str


class CauseBins(Contract):
    cause: str
    counts: tuple[int, ...]


class PositionHistogram(Contract):
    width: Number
    starts: tuple[int, ...]
    series: tuple[CauseBins, ...]
    n: Count
    n_at_start: Count


class Cluster(Contract):
    key: str
    cause: str
    baseline_token: str | None
    candidate_token: str | None
    n_cases: Count
    n_of_cause: Count
    cases: tuple[str, ...]


class ScorerOfSide(Contract):
    digest: Digest


class BucketOfSide(BucketShare):
    """`backend` is what the endpoint's backend is called, the same on both sides."""

    backend: str


class TargetedBeside(Contract):
    """Repeats of only the cases most likely to flip; a release's verdict counts them, comparisons do not."""

    n_repeats: Number
    n_cases: Number


class SpeedAndTokens(Contract):
    """How fast the answers of a run came and what they took, over up to 1,000 cases of each repeat.

    Cost follows from the tokens, by the prices of who serves.
    """

    n_responses: Count
    median_seconds: Annotated[float | None, says(description="of a call, or of decoding on our workers")]
    p95_seconds: float | None
    tokens: Annotated[float | None, says(description="mean of an answer")]
    prompt_tokens: Annotated[float | None, says(description="mean of a prompt")]


class ComparedSide(ProfileNamed, Contract):
    run: Id
    suite: SuiteNamed
    endpoint: str
    profile: str
    profile_version: Number
    model: str
    repeats: tuple[RepeatScored, ...]
    range: Range | None
    scorer: ScorerOfSide
    buckets: tuple[BucketOfSide, ...]
    targeted: TargetedBeside | None
    cost: Annotated[Cost | None, says(description="of the run; null: its endpoint has no price, or it is a log")] = (
        optional
    )
    speed: Annotated[SpeedAndTokens | None, says(description="null for two logs, and without an answer")] = optional
    n_repeats: int = page_only  # the run's, so that "3 of 5" can be said


class ComparedSides(Contract):
    baseline: ComparedSide
    candidate: ComparedSide


class CauseCount(Contract):
    """How many differing pairs have a cause, and how many of them changed the score; for filters."""

    cause: str
    n_pairs: Count
    n_score_changed: Count


class FlipPoint(Contract):
    """One flip in the scatter chart, by the names under which the comparison stores it.

    The baseline's margin there, how far the logits moved, and the gap where drift starts.
    """

    case_index: int
    repeat_baseline: int
    repeat_candidate: int
    cause: str
    flip: int = Field(validation_alias="flip_position")
    margin: float | None = Field(validation_alias="margin_baseline")
    movement: float | None = Field(validation_alias="evidence__movement")
    gap: float | None = Field(validation_alias="gap_at_onset")


class ChangedText(Contract):
    """A piece of a message: equal, removed from the baseline's, or added in the candidate's."""

    kind: Annotated[str, says(enum=("same", "removed", "added"))]
    text: str


class ChangedMessage(Contract):
    """A message that differs, word by word.

    The role of tools is `tools`. `{input}` replaces the case's own input.
    """

    role: str
    pieces: tuple[ChangedText, ...]


class PromptChange(Contract):
    """A change common to `n_cases`, shown on the first of them, `case`."""

    n_cases: Count
    case: str
    messages: tuple[ChangedMessage, ...]


class PromptsCompared(Contract):
    """How cases were paired, and what changed in their prompts, where the prompt is judged.

    `n_alone_*`: cases without a partner, of which `n_other_target` have another target there and `n_repeated` an input
    that others have too. `n_other_input`: pairs whose inputs are not equal. Of `n_changed` pairs `n_read` were laid
    side by side; they have `n_changes` different changes, of which the most frequent are in `changes`.
    """

    pair_by: PairBy
    n_pairs: Count
    n_changed: Count
    n_alone_baseline: Count
    n_alone_candidate: Count
    n_other_target: Count
    n_repeated: Count
    n_other_input: Count
    n_read: Count
    n_changes: Count
    changes: tuple[PromptChange, ...]
    text: str


class Comparison(Contract):
    """Two runs compared.

    Ledger, histograms and clusters are incomplete until `progress.status` is `finished`.
    """

    baseline: Id
    candidate: Id
    repeat: RepeatPair | None
    progress: ComparisonProgress
    treatment: Treatment
    comparable: bool
    moved: tuple[Moved, ...]
    prompts: Annotated[PromptsCompared | None, says(description="null unless the prompt is what is judged")]
    blocks: tuple[Note, ...]
    score: Annotated[
        ScoreCompared,
        says(description="nulls if several buckets answered a side; pairs are compared all the same"),
    ]
    counts: ComparedCounts
    parts: CaseParts
    outcomes: Annotated[
        OutcomeCounts | None,
        says(description="cases by the verdict's rule (docs/verdict.md); null if several buckets answered a side"),
    ]
    ledger: tuple[LedgerLine, ...]
    noise_share: NoiseShare | None
    computation: Annotated[
        Computation | None, says(description="null until it is computed, and where the prompt is judged")
    ]
    larger_shifts: LargerShifts | None
    noise: Annotated[
        NumericNoise | None,
        says(description="between the main buckets of both sides; null if nothing differs"),
    ]
    onset_histogram: PositionHistogram | None
    flip_histogram: PositionHistogram | None
    clusters: tuple[Cluster, ...]
    n_clusters: Count
    causes: tuple[CauseCount, ...] = optional
    looks: Annotated[
        tuple[CauseCount, ...],
        says(description="pairs of another cause, such as a changed backend, whose numbers look like this one"),
    ] = optional
    unseen: Annotated[
        tuple[str, ...],
        says(description="causes that no pair could have shown, as what shows them is not known of both sides"),
    ] = optional
    sides: ComparedSides
    finished_at: Instant | None
    url: PageAddress
    id: int = page_only  # of the record that holds it
    flips: tuple[FlipPoint, ...] = page_only  # a sample of at most so many as the scatter draws
    n_flips: int = page_only  # of all pairs
    backends: tuple[tuple[str, str], ...] = page_only  # names of both sides' backends, among differing pairs
    tags: tuple[str, ...] = page_only  # of cases that differ

    @property
    def repeats(self) -> tuple[int, int] | None:
        """Return the repeat of each side if only one pair of repeats was compared."""
        if self.repeat is None:
            return None
        baseline, candidate = self.repeat.split(",")
        return int(baseline), int(candidate)

    @property
    def terms(self) -> Terms:
        return Terms(self.treatment, self.prompts.pair_by if self.prompts else BY_INPUT)

    @property
    def run_ids(self) -> tuple[int, int]:
        return int(self.baseline), int(self.candidate)

    @property
    def is_same_run(self) -> bool:
        return self.baseline == self.candidate

    @property
    def mixed_sides(self) -> tuple[str, ...]:
        """Return the sides that several buckets answered.

        If there is one, neither points nor a difference are given.
        """
        return tuple(name for name in SIDES if len(getattr(self.sides, name).buckets) > 1)

    @property
    def moved_fields(self) -> tuple[MovedField, ...]:
        return tuple(each.as_field for each in self.moved)


@dataclass(slots=True)
class Flip:
    """A pair of responses that differ, or of which one is missing. Fields are the stored columns.

    A comparison has many thousands, so they are not validated.

    case_index: in the baseline's suite. numeric: as in `cause.Cause`, "" for none. consequence: from core.compare.
    Positions count from 0, margins and gaps are in nats; None is "never" or "not known". token_*: chosen at the flip.
    evidence: of the cause, with `n_tokens_*` of both traces, `text_position` and the `buckets` of both sides.
    """

    case_index: int
    repeat_baseline: int
    repeat_candidate: int
    cause: str
    numeric: str
    consequence: int
    score_baseline: float | None
    score_candidate: float | None
    drift_onset: int | None = None
    flip_position: int | None = None
    margin_baseline: float | None = None
    margin_candidate: float | None = None
    gap_at_onset: float | None = None
    token_baseline: int | None = None
    token_candidate: int | None = None
    evidence: dict[str, Any] = field(default_factory=dict)

    def point(self, repeats: tuple[int, int]) -> dict[str, Any]:
        """Return the pair's point in the chart of flips, as a comparison's summary stores it."""
        names = (str(field.validation_alias or name) for name, field in FlipPoint.model_fields.items())
        own = {name: getattr(self, name, None) for name in names}
        movement = self.evidence.get("movement")
        return own | {"repeat_baseline": repeats[0], "repeat_candidate": repeats[1], "evidence__movement": movement}


class PartedPair(Contract):
    """Where and why the two responses of a pair diverged. `drift_onset` to `gap_at_onset` are a flip's."""

    case: str
    cause: str
    numeric: Annotated[str | None, says(description="the numeric cause, next to another model or backend")]
    text: str
    evidence: dict[str, Any]
    drift_onset: Position | None
    flip_position: Position | None
    margin_baseline: float | None
    margin_candidate: float | None
    gap_at_onset: float | None

    @property
    def margins(self) -> tuple[float | None, float | None]:
        return self.margin_baseline, self.margin_candidate


class ComparedCase(PartedPair):
    """A pair that differs."""

    repeat_baseline: Number
    repeat_candidate: Number
    score_baseline: Points | None
    score_candidate: Points | None
    backend_baseline: Annotated[str | None, says(description="what the backend is called, as in `sides`")]
    backend_candidate: Annotated[str | None, says(description="what the backend is called, as in `sides`")]
    url: PageAddress
    place: int = page_only  # in the list, as cursors have it
    case_index: int = page_only
    tags: tuple[str, ...] = page_only
    text_position: int | None = page_only
    n_tokens_baseline: int | None = page_only
    n_tokens_candidate: int | None = page_only
    token_baseline: str = page_only  # drawn, "" where the side has none at the flip
    token_candidate: str = page_only

    @property
    def repeats(self) -> tuple[int, int]:
        return self.repeat_baseline, self.repeat_candidate

    @property
    def at(self) -> int | None:
        """Return the position at which to open the trace diff: the flip, else where drift starts."""
        return self.drift_onset if self.flip_position is None else self.flip_position


class CaseOutcome(Contract):
    """A case with its scores by repeat, null where there is none, and the cause of its gravest pair."""

    case: str
    scores_baseline: tuple[Points | None, ...]
    scores_candidate: tuple[Points | None, ...]
    chance: Annotated[
        float | None,
        says(
            minimum=0,
            maximum=1,
            description="chance of a case moving as far if nothing changed; null if the case neither broke"
            " nor was fixed, and where a side has one repeat",
        ),
    ]
    is_beyond_chance: Annotated[bool, says(description="marked so that at most 1 in 10 marked cases is due to chance")]
    cause: str | None
    url: PageAddress
    pair: ComparedCase | None = page_only
    prompt: str = page_only
    tags: tuple[str, ...] = page_only
