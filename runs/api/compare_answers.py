"""What the API answers about comparisons, as types; answers.py says how they are used.

Margins, gaps and logprobs are in nats, scores and differences in points.
"""

from typing import Annotated, Any, TypedDict

from runs import models
from runs.api.answers import (
    Address,
    BucketShare,
    Count,
    Digest,
    Id,
    Instant,
    Note,
    Number,
    Points,
    Range,
    RepeatScored,
    ResponseError,
    SuiteNamed,
)
from runs.api.schema_types import says

RepeatPair = Annotated[str, says(pattern="^[0-9]+,[0-9]+$")]
Position = Annotated[int, says(minimum=0)]


class ComparisonProgress(TypedDict):
    status: Annotated[str, says(enum=models.Comparison.Status.values)]
    n_done: Count
    n_total: Count
    error: str | None


class Moved(TypedDict):
    field: str
    baseline: Any
    candidate: Any


class ScoreCompared(TypedDict):
    baseline: Points | None
    candidate: Points | None
    difference: float | None


class ComparedCounts(TypedDict):
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


class OutcomeCounts(TypedDict):
    """Numbers of cases."""

    broken: Count
    fixed: Count
    unstable: Count


class LedgerLine(TypedDict):
    """One cause's part of the difference; the lines add up to `score.difference`."""

    cause: str
    n_cases: Count
    points: float
    gained: float
    lost: float


class LargerShifts(TypedDict):
    """Cases whose logits moved further than noise explains, of those that could be read; others have another cause."""

    n_cases: Count
    n_read: Count
    n_established: Count
    text: str | None


class NumericNoise(TypedDict):
    sd: float
    near: float
    ulp: float | None
    is_assumed: bool
    dtype: str | None
    text: str


class CauseBins(TypedDict):
    cause: str
    counts: list[int]


class PositionHistogram(TypedDict):
    width: Number
    starts: list[int]
    series: list[CauseBins]
    n: Count
    n_at_start: Count


class Cluster(TypedDict):
    key: str
    cause: str
    baseline_token: str | None
    candidate_token: str | None
    n_cases: Count
    n_of_cause: Count
    cases: list[str]


class ScorerOfSide(TypedDict):
    digest: Digest


class BucketOfSide(BucketShare):
    """`backend` is the bucket's letter, the same on both sides."""

    backend: str


class ComparedSide(TypedDict):
    run: Id
    suite: SuiteNamed
    endpoint: str
    profile: str
    profile_version: Number
    model: str
    repeats: list[RepeatScored]
    range: Range | None
    scorer: ScorerOfSide
    buckets: list[BucketOfSide]


class ComparedSides(TypedDict):
    baseline: ComparedSide
    candidate: ComparedSide


class Comparison(TypedDict):
    """Two runs compared. Until `progress.status` is `finished`, ledger, histograms and clusters are not whole."""

    baseline: Id
    candidate: Id
    repeat: RepeatPair | None
    progress: ComparisonProgress
    comparable: bool
    moved: list[Moved]
    blocks: list[Note]
    score: ScoreCompared
    counts: ComparedCounts
    outcomes: OutcomeCounts | None
    ledger: list[LedgerLine]
    larger_shifts: LargerShifts | None
    noise: NumericNoise | None
    onset_histogram: PositionHistogram | None
    flip_histogram: PositionHistogram | None
    clusters: list[Cluster]
    n_clusters: Count
    sides: ComparedSides
    finished_at: Instant | None
    url: Address


class ComparedCase(TypedDict):
    """A pair that differs."""

    case: str
    repeat_baseline: Number
    repeat_candidate: Number
    cause: str
    numeric: str | None
    text: str
    evidence: dict[str, Any]
    drift_onset: Position | None
    flip_position: Position | None
    margin_baseline: float | None
    margin_candidate: float | None
    gap_at_onset: float | None
    score_baseline: Points | None
    score_candidate: Points | None
    backend_baseline: str | None
    backend_candidate: str | None
    url: Address


class CaseOutcome(TypedDict):
    """A case with its scores by repeat, null where there is none, and the cause of its gravest pair."""

    case: str
    scores_baseline: list[Points | None]
    scores_candidate: list[Points | None]
    cause: str | None
    url: Address


class TokenOfPair(TypedDict):
    token_id: int
    drawn: str
    logprob: float | None


class TokenAtPosition(TokenOfPair):
    position: Position
    margin: float | None
    alternatives: list[TokenOfPair]


class PairPosition(TypedDict):
    """What stands side by side; a side without a token there has none."""

    at: Position
    baseline: list[TokenAtPosition]
    candidate: list[TokenAtPosition]


class PairSide(TypedDict):
    run: Id
    repeat: Number
    text: str
    finish_reason: str | None
    error: ResponseError | None
    score: Points | None
    reason: str | None
    n_tokens: Count | None
    trace_digest: Digest | None
    fingerprint: Digest | None
    batch_class: str | None


class TracePair(TypedDict):
    """One pair of responses around the position `at`; only that position's tokens come with their alternatives."""

    case: str
    baseline: PairSide
    candidate: PairSide
    cause: str
    numeric: str | None
    text: str
    evidence: dict[str, Any]
    drift_onset: Position | None
    flip_position: Position | None
    margin_baseline: float | None
    margin_candidate: float | None
    gap_at_onset: float | None
    n_positions: Count
    at: Position | None
    positions: list[PairPosition]
    provenance: list[Moved]
    moved: list[Moved]
    url: Address
