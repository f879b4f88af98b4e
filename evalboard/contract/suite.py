"""Suites, their versions, and how their scores moved."""

import math
from typing import Annotated, Any

from evalboard.contract.base import (
    Contract,
    Count,
    Digest,
    Id,
    Instant,
    Number,
    PageAddress,
    Points,
    Range,
    RunStatus,
    page_only,
    says,
)
from evalboard.contract.parts import FingerprintNamed, ProfileNamed, WaitingFor
from evalboard.contract.run import TERMINAL, Draws, RunRow, RunWarning


class SuiteRow(Contract):
    slug: str
    title: str
    version: Number
    n_cases: Count
    n_runs: Count
    last_run: Id | None
    url: PageAddress
    newest_run: RunRow | None = page_only  # `last_run` as lists have it
    is_recorded: bool = page_only  # its scores were read from logs, so that no run of it can be scored here


class ScorerOfWorker(Contract):
    """A worker that has a team's own scorer."""

    worker: str
    pool: str
    version: Annotated[str, says(description="of the scorer's package, empty without one")]
    problem: Annotated[str | None, says(description="why this worker cannot run it")]


class OwnScorer(Contract):
    """A scorer that a team brought, as living workers have it."""

    kind: Annotated[str, says(enum=("python", "command", "http"))]
    name: str
    digest: Digest
    workers: tuple[ScorerOfWorker, ...]


class TrialAnswer(Contract):
    """What came back for a case, scored as a run would score it."""

    text: str
    thinking: Annotated[str | None, says(description="what the model thought before, null where nothing is apart")]
    score: Annotated[float | None, says(minimum=0, maximum=1, description="null: a team's own scorer gave none")]
    reason: Annotated[str, says(description="why it has this score, or none")]
    finish_reason: str
    seconds: Annotated[float, says(minimum=0)]


class Trial(Contract):
    """One case sent to an endpoint once. It is part of no run and no score, and is kept for a week."""

    id: Id
    case: str
    endpoint: str
    profile: str
    target: Any
    scorer: dict[str, Any]
    status: Annotated[str, says(enum=("queued", "running", "finished", "failed"))]
    answer: TrialAnswer | None
    error: Annotated[str | None, says(description="why there is no answer")]
    created_at: Instant
    finished_at: Instant | None

    @property
    def is_terminal(self) -> bool:
        return self.status in ("finished", "failed")


class SuiteVersion(Contract):
    """One version of a suite. `scorer` is the scorer as the suite has it, with its digest."""

    slug: str
    title: str
    version: Number
    digest: Digest
    n_cases: Count
    max_tokens: Number
    stop: tuple[str, ...]
    scorer: dict[str, Any]
    created_at: Instant
    url: PageAddress
    is_recorded: bool = page_only  # its scores were read from logs, so that no run of it can be scored here

    @property
    def scorer_plan(self) -> dict[str, Any]:
        """The scorer as the suite has it."""
        return {name: value for name, value in self.scorer.items() if name != "digest"}

    @property
    def points_per_case(self) -> float:
        return 100 / self.n_cases


class SuiteVersionRow(Contract):
    version: Number
    digest: Digest
    n_cases: Count
    n_runs: Count
    created_at: Instant


class BucketOfHistory(Contract):
    id: Id
    model: str
    fingerprint: Digest
    batch_class: str
    stack: FingerprintNamed = page_only  # the fingerprint with its label

    @property
    def bucket_id(self) -> int:
        return int(self.id)


class HistoryRow(ProfileNamed, Contract):
    """One run in one bucket."""

    run: Id
    suite_version: Number
    date: Instant
    status: RunStatus
    waiting_for: Annotated[WaitingFor | None, says(description="its paused endpoint, while it waits for that")]
    endpoint: str
    profile: str
    profile_version: Number
    bucket: BucketOfHistory
    repeats: tuple[Points, ...]
    n_buckets: Count
    warnings: tuple[RunWarning, ...]
    range: Range | None
    url: PageAddress
    range_so_far: Range | None = page_only  # of a run at work too; none where several buckets served it
    n_repeats: int = page_only  # of the run, whether they have points or not
    line: str = page_only  # the model line: with the profile, it selects the baselines to compare with
    draws: Draws = page_only
    is_imported: bool = page_only

    @property
    def run_id(self) -> int:
        return int(self.run)

    @property
    def points(self) -> tuple[float, ...]:
        """Return the scores of its repeats of samples, over the cases of this bucket."""
        return self.repeats

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def mean(self) -> float | None:
        """The score in points; None where the run as a whole has none, or none yet."""
        return None if self.range is None else math.fsum(self.repeats) / len(self.repeats)


class BucketHistory(BucketOfHistory):
    """A bucket with its runs, oldest first; buckets are never merged. For pages only."""

    runs: tuple[HistoryRow, ...]
