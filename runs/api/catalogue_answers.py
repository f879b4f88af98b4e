"""What the API answers about suites, endpoints, profiles, policies, fingerprints and workers; see answers.py."""

from typing import Annotated, Any, NotRequired, TypedDict

from runs.api.answers import (
    Address,
    Count,
    Digest,
    FingerprintNamed,
    Id,
    Instant,
    ModelServed,
    Note,
    Number,
    Points,
    Range,
    RunStatus,
    Seats,
)
from runs.api.schema_types import says

# --- suites


class SuiteRow(TypedDict):
    slug: str
    title: str
    version: Number
    n_cases: Count
    n_runs: Count
    last_run: Id | None
    url: Address


class SuiteVersion(TypedDict):
    """One version of a suite. `scorer` is the scorer as the suite has it, with its digest."""

    slug: str
    title: str
    version: Number
    digest: Digest
    n_cases: Count
    max_tokens: Number
    stop: list[str]
    scorer: dict[str, Any]
    created_at: Instant
    url: Address


class SuiteVersionRow(TypedDict):
    version: Number
    digest: Digest
    n_cases: Count
    n_runs: Count
    created_at: Instant


class BucketOfHistory(TypedDict):
    id: Id
    model: str
    fingerprint: Digest
    batch_class: str


class HistoryRow(TypedDict):
    """One run in one bucket."""

    run: Id
    suite_version: Number
    date: Instant
    status: RunStatus
    endpoint: str
    profile: str
    profile_version: Number
    bucket: BucketOfHistory
    repeats: list[Points]
    n_buckets: Count
    warnings: list[Note]
    range: Range | None
    url: Address


# --- endpoints, profiles


class ModelAsked(TypedDict):
    """A checkpoint: a path, or a repository with a revision."""

    path: NotRequired[str]
    repo: NotRequired[str]
    revision: NotRequired[str]


class Endpoint(TypedDict):
    slug: str
    engine: str
    model: ModelAsked
    dtype: str
    quantization: str
    line: str
    max_model_len: Number
    pool: str


class Profile(TypedDict):
    slug: str
    version: Number
    title: str
    settings: dict[str, Any]
    digest: Digest
    created_at: Instant


class Policy(Profile):
    """What releases are judged by; `suites` carry it."""

    suites: list[str]
    created_by: str | None


class SameModel(TypedDict):
    """Two names that a person said are one model; `taken_back_at` is null while it holds."""

    id: Id
    name: str
    other_name: str
    reason: str
    said_by: str | None
    said_at: Instant
    taken_back_by: str | None
    taken_back_at: Instant | None


# --- fingerprints, workers


class FingerprintRow(FingerprintNamed):
    n_runs: Count
    created_at: Instant


class BucketOfFingerprint(TypedDict):
    id: Id
    model: ModelServed
    batch_class: str
    n_runs: Count


class Fingerprint(FingerprintRow):
    """With exactly the manifest that its digest covers."""

    manifest: dict[str, Any]
    buckets: list[BucketOfFingerprint]


class FieldMoved(TypedDict):
    field: str
    a: Any
    b: Any


class FingerprintDifference(TypedDict):
    """What moved from `a` to `b`, what matters most first; null is unknown, and equal to nothing."""

    a: FingerprintRow
    b: FingerprintRow
    moved: list[FieldMoved]
    n_equal: Count
    n_unknown: Count
    url: Address


class ShardHeld(TypedDict):
    run: Id
    repeat: Number
    first: Count
    last: Count


class SelfTestFinding(TypedDict):
    kernels: str
    operation: str
    dtype: str
    is_same: bool | None
    text: str


class SelfTest(TypedDict):
    id: Id
    at: Instant
    is_invariant: bool
    findings: list[SelfTestFinding]


class Worker(TypedDict):
    id: Id
    name: str
    host: str
    pool: str
    state: Annotated[str, says(enum=("working", "idle", "resting", "silent", "stopped"))]
    hardware: dict[str, Any]
    versions: dict[str, Any]
    fingerprint: Digest | None
    seats: Seats | None
    shard: ShardHeld | None
    note: str
    rests_until: Instant | None
    n_engine_failures: Count
    n_fenced: Count
    self_test: SelfTest | None
    seen_at: Instant
    started_at: Instant
