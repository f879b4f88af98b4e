"""What lists, pages and the API show of a run. Built by run_list.py, run_detail.py and run_cases.py."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class RunWarning:
    """Something nobody may miss; `code` is stable, `text` one sentence."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    n_done: int
    n_total: int
    rate_per_second: float | None
    eta_seconds: float | None


@dataclass(frozen=True, slots=True)
class ShardCell:
    """One shard as a cell that fills up; `attempt` counts from 1 once claimed, 0 before."""

    id: int
    first: int
    last: int
    status: str
    attempt: int
    n_done: int
    worker: str
    error: str


@dataclass(frozen=True, slots=True)
class RepeatLine:
    """One repeat: its points under the run's own scorer, None unless every case is scored.

    `process_ids` are the engine processes that decoded it, so that the page can say which
    repeats shared a process.
    """

    index: int
    status: str
    points: float | None
    n_missing: int
    shards: tuple[ShardCell, ...]
    process_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BucketRepeat:
    index: int
    points: float | None
    n_responses: int


@dataclass(frozen=True, slots=True)
class BucketReport:
    """One bucket's share of a run; `range` spans its repeats, never another bucket's."""

    id: int
    model_name: str
    model_digest: str
    fingerprint_id: int
    fingerprint_digest: str
    fingerprint_label: str
    batch_class: str
    n_responses: int
    share: float
    repeats: tuple[BucketRepeat, ...]
    range: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Noise:
    """Measured from the repeats (core.noise); None where fewer than two repeats are complete."""

    disagreement_rate: float | None
    sd_points: float | None
    n_unstable: int | None


@dataclass(frozen=True, slots=True)
class Pin:
    name: str
    wanted: Any
    found: Any
    held: bool


@dataclass(frozen=True, slots=True)
class ProcessLine:
    """One engine process of a run, with the repeats it decoded and its self-checks."""

    id: int
    worker: str
    host: str
    started_at: datetime
    start_seconds: float
    repeats: tuple[int, ...]
    n_self_checks: int
    self_checks_same: bool
    last_words: str


@dataclass(frozen=True, slots=True)
class EventLine:
    at: datetime
    level: str
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """The run's range under one scorer; the first is the suite's own, others come from rescoring."""

    scorer_id: int
    scorer_digest: str
    is_own: bool
    points: tuple[float | None, ...]
    range: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class TwinRun:
    """An earlier run of the same suite version, endpoint and profile whose traces are compared by digest."""

    run_id: int
    n_equal: int
    n_compared: int


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in a list."""

    id: int
    suite: str
    suite_version: int
    endpoint: str
    profile: str
    model_name: str
    status: str
    n_done: int
    n_total: int
    n_repeats: int
    points: tuple[float | None, ...]
    range: tuple[float, float] | None
    n_buckets: int
    batch_class: str
    fingerprint_digest: str
    pins_held: bool | None
    labels: dict[str, str]
    created_at: datetime
    finished_at: datetime | None
    bucket_id: int | None = None  # the one that it keeps to, once an engine serves it

    @property
    def is_terminal(self) -> bool:
        return self.status in ("finished", "incomplete", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class RunReport:
    """Everything the run page and `GET /runs/{id}/` show, cases apart.

    `row.points` and `row.range` are "so far" while the run is not terminal. `manifest` is that of the
    newest engine process, host part included. `stored_bytes` counts packed traces and per-case columns;
    texts are not counted, since that would read every response.
    """

    row: RunRow
    suite_title: str
    suite_digest: str
    n_cases: int
    points_per_case: float
    progress: Progress
    repeats: tuple[RepeatLine, ...]
    buckets: tuple[BucketReport, ...]
    noise: Noise
    pins: tuple[Pin, ...]
    warnings: tuple[RunWarning, ...]
    n_errors: int
    errors_by_code: dict[str, int]
    last_error: str
    processes: tuple[ProcessLine, ...]
    events: tuple[EventLine, ...]
    scores: tuple[ScoreLine, ...]
    twin: TwinRun | None
    sampling: dict[str, Any]
    engine_settings: dict[str, Any]
    manifest: dict[str, Any]
    stored_bytes: int
    created_by: str
    started_at: datetime | None
    asked: dict[str, Any]  # the body of `POST /runs/` that asks for the same again
    workers_waiting: str
    is_cancel_wanted: bool


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case of a run over its repeats, unstable ones first.

    `scores` has one value in [0, 1] a repeat, None where missing or not scored yet; `n_texts`
    and `n_traces` count the different ones among the repeats that have ended. `reason` is that of
    the first repeat with the lowest score.
    """

    index: int
    case_id: str
    prompt: str
    tags: tuple[str, ...]
    scores: tuple[float | None, ...]
    reason: str
    n_texts: int
    n_traces: int
    error_codes: tuple[str, ...]
    is_unstable: bool
