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
    Score,
    page_only,
    says,
)
from evalboard.contract.parts import FingerprintNamed, ProfileNamed, WaitingFor
from evalboard.contract.run import TERMINAL, Draws, RunRow, RunWarning, ScorerOfRun


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


class RescoredRun(Contract):
    """What would change in a run if a scorer by which it is scored decided in place of its suite's own."""

    run: Id
    suite: str
    suite_version: Number
    scorer: ScorerOfRun
    spec: Annotated[dict[str, Any], says(description="the scorer as the run is scored by it: `default` and `cases`")]
    waiting: Annotated[bool, says(description="a worker has yet to score repeats by it, so that all else may change")]
    waits_for: Annotated[str | None, says(description="while it waits: for what, in words")]
    before: Annotated[tuple[Points | None, ...], says(description="of each repeat, by the suite's own scorer")]
    after: tuple[Points | None, ...]
    range_before: Range | None
    range_after: Range | None
    points: Annotated[
        float | None,
        says(description="by which the score moves, over cases that both score; null where several buckets served it"),
    ]
    n_cases: Annotated[int, says(minimum=0, description="whose score changes in some repeat")]
    n_unscored: Annotated[int, says(minimum=0, description="of those, cases that it leaves unscored")]
    points_per_case: Annotated[Points, says(description="of those that both scorers score")]
    n_scored: int = page_only  # repeats that have its scores

    @property
    def n_repeats(self) -> int:
        return len(self.before)


class RescoredCase(Contract):
    """A case that the other scorer scores otherwise. Words are of the first repeat where it does."""

    case: str
    points: Annotated[
        float | None,
        says(description="by which it moves the score; null if several buckets served the run or no repeat has both"),
    ]
    before: Annotated[tuple[Score | None, ...], says(description="of each repeat that has both scores")]
    after: tuple[Score | None, ...]
    repeat: Number
    target: Any
    answer: Annotated[str | None, says(description="the beginning of the response")]
    reason_before: str | None
    reason_after: str | None
    url: PageAddress


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
