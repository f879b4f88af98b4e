"""What lists, pages and the API show of a run. Built by run_list.py, run_detail.py and run_cases.py."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from evalboard.core.draws import Draws
from evalboard.core.seats import Seats
from runs.selectors.run_scores import drawn_points


@dataclass(frozen=True, slots=True)
class RunWarning:
    """Something nobody may miss; `code` is stable, `text` one sentence."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Of a run at work `n_done` counts what was tried; of one that has ended, the responses that came."""

    n_done: int
    n_total: int
    rate_per_second: float | None
    eta_seconds: float | None


@dataclass(frozen=True, slots=True)
class ShardCell:
    """One shard as a cell that fills up; `attempt` counts from 1 once claimed, 0 before.

    `is_silent`: its worker has not been heard of for a lease, so that another takes it over soon. `n_failures` are
    attempts and starts that came to nothing; a queued shard is not claimed before `waits_until`.
    """

    id: int
    first: int
    last: int
    status: str
    attempt: int
    n_done: int
    worker: str
    error: str
    is_silent: bool = False
    n_failures: int = 0
    waits_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class RepeatLine:
    """One repeat: its points under the run's own scorer, None unless every case is scored.

    With `n_left_out` responses that are no draws (core.live_answers) it is in no range.
    `process_ids` are the engine processes that decoded it, so that the page can say which
    repeats shared a process.
    """

    index: int
    status: str
    points: float | None
    n_missing: int
    n_left_out: int
    shards: tuple[ShardCell, ...]
    process_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BucketRepeat:
    index: int
    points: float | None
    n_responses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How much a bucket's score moves with nothing changed (core.noise), from the repeats that are whole.

    What takes two repeats is None with fewer. `interval` is the score's on these very cases and `reach` that on others
    like them, both of level `level` and None where the bucket has no range. `overdispersion` is the chance of repeats
    that differ this much if runs do not move as a whole. `texts_alike`, `scores_alike`: the share of cases of which
    all repeats gave one text, one score. `n_likely_to_flip` needs one repeat; None where the margins do not say.
    """

    n_repeats: int = 0
    disagreement_rate: float | None = None
    sd_points: float | None = None
    n_unstable: int | None = None
    expected_range_points: float | None = None
    range5_points: float | None = None
    interval: tuple[float, float] | None = None
    reach: tuple[float, float] | None = None
    level: float | None = None
    overdispersion: float | None = None
    is_overdispersed: bool = False
    texts_alike: float | None = None
    scores_alike: float | None = None
    resolution: "Resolution | None" = None
    n_likely_to_flip: int | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """The smallest change that `repeats` a side tell from noise, both sides being like this bucket; points.

    `elsewhere_points` is the one for other cases like these, where a share `churn` changes its score either way.
    """

    repeats: int
    points: float
    elsewhere_points: float
    churn: float


@dataclass(frozen=True, slots=True)
class BucketReport:
    """One bucket's share of a run; `range` and `noise` are of its repeats, never another bucket's."""

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
    noise: Noise


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
    seats: Seats | None
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
    """A run in a list. `profile` is its name with its version, `n_done` as in Progress."""

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
    ran_at: datetime  # where it stands in time: of a log, when that says it ran
    finished_at: datetime | None
    bucket_id: int | None = None  # the one that it keeps to, once an engine serves it
    profile_slug: str = ""
    profile_version: int = 0
    draws: Draws = field(default_factory=Draws)
    left_out: tuple[int, ...] = ()  # by repeat: responses that are no draws (core.live_answers)

    @property
    def drawn_points(self) -> tuple[float | None, ...]:
        """The points of the repeats whose answers are all draws: those of its range."""
        return drawn_points(self.points, self.left_out)

    @property
    def is_terminal(self) -> bool:
        return self.status in ("finished", "incomplete", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class RunReport:
    """Everything the run page and `GET /runs/{id}/` show, cases apart.

    `noise` is that of the run's one bucket, all unknown where there are several.
    `n_cases_unscored`: cases without a score in any repeat.
    `row.points` and `row.range` are "so far" while the run is not terminal. `manifest` is
    that of the newest engine process, host part included. `stored_bytes` counts packed traces and per-case columns;
    texts are not counted, since that would read every response.
    """

    row: RunRow
    suite_title: str
    suite_digest: str
    n_cases: int
    n_cases_unscored: int
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

    `scores` has one value in [0, 1] a repeat, None where missing or not scored yet; `mean` is over those that are
    known, None where several buckets answered the case. `n_texts` and `n_traces` count the different ones among the
    repeats that have ended. `reason` is that of the first repeat with the lowest score. `flip_chance` is predicted from
    the first repeat's margins (core.fragility), None where they do not say. `marks` has, by repeat, what a log says of
    the answer; `is_unstable` reads draws alone (core.live_answers).
    """

    index: int
    case_id: str
    prompt: str
    tags: tuple[str, ...]
    scores: tuple[float | None, ...]
    mean: float | None
    reason: str
    n_texts: int
    n_traces: int
    error_codes: tuple[str, ...]
    is_unstable: bool
    flip_chance: float | None = None
    is_likely_to_flip: bool = False
    marks: tuple[tuple[str, ...], ...] = ()

    @property
    def marked(self) -> dict[str, int]:
        """How many of its responses carry each mark."""
        return dict(Counter(name for names in self.marks for name in names))
