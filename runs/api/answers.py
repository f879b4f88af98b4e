"""What the API answers, as types: the OpenAPI schema is made of them, and mypy holds the shapes to them.

A class here is a named schema. Its docstring is what the schema says of it. All fields are always there unless they
are `NotRequired`; null means unknown or none.
"""

from typing import Annotated, Any, Generic, NotRequired, TypedDict, TypeVar

from evalboard.core import live_answers
from runs import models
from runs.api.schema_types import says

Id = Annotated[str, says(pattern="^[0-9]+$")]
Instant = Annotated[str, says(format="date-time", description="RFC 3339, in UTC")]
Address = Annotated[str, says(format="uri")]
Digest = Annotated[str, says(pattern="^([0-9a-f]{2})*$")]
Points = Annotated[float, says(minimum=0, maximum=100)]
Count = Annotated[int, says(minimum=0)]
Number = Annotated[int, says(minimum=1)]
Share = Annotated[float, says(minimum=0, maximum=1)]
Score = Annotated[float, says(minimum=0, maximum=1)]
Range = Annotated[list[float], says(minItems=2, maxItems=2, description="lowest and highest, in points")]
Labels = dict[str, str]
Mark = Annotated[str, says(enum=live_answers.MARKS)]
RunStatus = Annotated[str, says(enum=models.Run.Status.values)]

Row = TypeVar("Row")


class Page(TypedDict, Generic[Row]):
    """One page of a list; follow the addresses in `next` and `previous`."""

    next: Address | None
    previous: Address | None
    results: list[Row]


class Problem(TypedDict):
    """Any failure, as `application/problem+json`. `fields` maps the path of a field or parameter to what is wrong."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    fields: NotRequired[dict[str, str]]


class Note(TypedDict):
    """Something that nobody may miss: `code` is stable, `text` is one sentence."""

    code: str
    text: str


class Health(TypedDict):
    status: Annotated[str, says(enum=("alive",))]


class Readiness(TypedDict):
    status: Annotated[str, says(enum=("ready",))]
    warnings: list[Note]


# --- runs


class SuiteNamed(TypedDict):
    slug: str
    version: Number


class SuiteOfRun(SuiteNamed):
    digest: Digest
    n_cases: Count


class Done(TypedDict):
    n_done: Count
    n_total: Count


class Progress(Done):
    rate_per_second: float | None
    eta_seconds: float | None


class RepeatScored(TypedDict):
    index: Number
    score: Points | None


class RepeatOfRow(RepeatScored):
    """One repeat. With `n_left_out` responses that are no draws it is in no range (docs/imports.md)."""

    n_left_out: Count


class Repeat(RepeatOfRow):
    status: RunStatus
    n_missing: Count
    attempts: Count
    engine_processes: list[Id]


class Pin(TypedDict):
    name: str
    wanted: Any
    found: Any


class PinsHeld(TypedDict):
    held: bool | None


class Pins(PinsHeld):
    broken: list[Pin]


class Seats(TypedDict):
    """How many sequences an engine process decodes at a time: asked for by the profile, and got."""

    asked: Count
    got: Count


class SeatsOfProcess(Seats):
    engine_process: Id


class ModelServed(TypedDict):
    name: str
    digest: Digest


class FingerprintNamed(TypedDict):
    id: Id
    digest: Digest
    label: str


class Resolution(TypedDict):
    """The smallest change that so many repeats a side tell from noise, in points."""

    repeats: Count
    points: float
    elsewhere_points: float
    churn: float


class Noise(TypedDict):
    """How much a bucket's score moves with nothing changed; what takes two repeats is null with fewer."""

    n_repeats: Count
    disagreement_rate: float | None
    sd_points: float | None
    expected_range_points: float | None
    range5_points: float | None
    n_unstable: Count | None
    n_likely_to_flip: Count | None
    interval: Range | None
    reach: Range | None
    level: float | None
    overdispersion: float | None
    is_overdispersed: bool
    texts_alike: Share | None
    scores_alike: Share | None
    resolution: Resolution | None


class BucketShare(TypedDict):
    """One bucket of responses, and how much of a run it served."""

    id: Id
    model: ModelServed
    fingerprint: FingerprintNamed
    batch_class: str
    n_responses: Count
    share: Share


class BucketRepeat(RepeatScored):
    n_responses: Count


class Bucket(BucketShare):
    repeats: list[BucketRepeat]
    range: Range | None
    noise: Noise


class Errors(TypedDict):
    n: Count
    by_code: dict[str, int]
    last: str | None


class ScorerOfRun(TypedDict):
    id: Id
    digest: Digest
    is_own: bool


class ScoresUnderScorer(TypedDict):
    """The points of each repeat under one scorer; the suite's own comes first."""

    scorer: ScorerOfRun
    repeats: list[Points | None]
    range: Range | None


class Twin(TypedDict):
    """The newest earlier run of the same kind: how many of its traces are the same to the bit."""

    run: Id
    n_equal: Count
    n_compared: Count


class Sampled(TypedDict):
    """How a run's tokens were drawn. `is_one_draw`: repeats of a case were sent one seed, so that all are one draw."""

    temperature: float
    seed: Count | None
    is_one_draw: bool


class RunRow(TypedDict):
    """A run in a list: the same names as in `Run`, fewer of them. `ran_at` is where it stands in time."""

    id: Id
    suite: SuiteNamed
    endpoint: str
    profile: str
    profile_version: Number
    sampled: Sampled | None
    model: str
    status: RunStatus
    progress: Done
    repeats: list[RepeatOfRow]
    range: Range | None
    bucket: Id | None
    n_buckets: Count
    warnings: list[Note]
    pins: PinsHeld
    labels: Labels
    created_at: Instant
    ran_at: Instant
    finished_at: Instant | None
    url: Address


class Run(TypedDict):
    """A run in full. `range` is null until it is finished, and where responses are missing or buckets differ."""

    id: Id
    suite: SuiteOfRun
    endpoint: str
    profile: str
    profile_version: Number
    sampled: Sampled | None
    model: str
    status: RunStatus
    progress: Progress
    repeats: list[Repeat]
    range: Range | None
    bucket: Id | None
    n_buckets: Count
    buckets: list[Bucket]
    noise: Noise
    pins: Pins
    seats: list[SeatsOfProcess]
    warnings: list[Note]
    errors: Errors
    scores: list[ScoresUnderScorer]
    twin: Twin | None
    stored_bytes: Count
    labels: Labels
    created_by: str | None
    created_at: Instant
    ran_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    url: Address


class ScorerNamed(TypedDict):
    id: Id
    digest: Digest


class Rescored(TypedDict):
    scorer: ScorerNamed
    run: Run


class ResponseError(TypedDict):
    code: str
    detail: str


class Response(TypedDict):
    """One response. `score` is the suite's own scorer's, from 0 to 1; `is_vouched` by the engine's self-checks.

    `marks`: what a log says of it; one that is `cached` or `fallback` is in no noise, range or verdict.
    """

    case: str
    case_index: Count
    repeat: Number
    text: str
    finish_reason: str | None
    error: ResponseError | None
    score: Score | None
    reason: str | None
    flip_chance: float | None
    is_vouched: bool
    marks: list[Mark]
    trace_digest: Digest | None
    provenance: dict[str, Any]
    recorded_at: Instant


class CaseOfRun(TypedDict):
    """One case over the repeats of a run. `scores` by repeat, from 0 to 1, null where missing or not scored yet.

    `score` is their mean; `reason` is of the first repeat with the lowest score, which `url` shows; `errors` are the
    codes of its missing responses; `n_texts` counts different ones; `marks` are those of each
    repeat's response, and `is_unstable` reads none that is `cached` or `fallback`.
    """

    case: str
    case_index: Count
    tags: list[str]
    score: Score | None
    scores: list[Score | None]
    reason: str | None
    errors: list[str]
    marks: list[list[Mark]]
    n_texts: Count
    is_unstable: bool
    flip_chance: float | None
    url: Address


class TraceToken(TypedDict):
    """`token` is null where its bytes are only part of a character; `drawn` shows everything."""

    token_id: int
    token: str | None
    drawn: str
    logprob: float | None


class TracePosition(TraceToken):
    alternatives: list[TraceToken]


class Trace(TypedDict):
    positions: list[TracePosition]


# --- replays


class Replay(TypedDict):
    """One case decoded again; `results` has one entry for each variant that was tried (docs/api.md)."""

    id: Id
    run: Id
    repeat: Number
    case: str
    status: Annotated[str, says(enum=models.Replay.Status.values)]
    variants: list[dict[str, Any]]
    results: list[dict[str, Any]]
    reading: list[str]
    error: str | None
    created_by: str | None
    created_at: Instant
    finished_at: Instant | None
    url: Address
