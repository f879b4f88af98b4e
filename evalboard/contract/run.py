"""Runs: the row of a list, and a whole run with its buckets and the content of its page."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

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
    optional,
    page_only,
    says,
)
from evalboard.contract.bucket import Bucket, Noise
from evalboard.contract.facts import SettingFact
from evalboard.contract.manifest import EngineSeats
from evalboard.contract.parts import Cost, CostEstimate, Done, ProfileNamed, RepeatScored, Seats, WaitingFor

PRIORITIES = ("release", "normal", "bulk")  # the first goes first
EXPERIMENT_LABEL = "experiment"  # of a run that is an arm of one
TERMINAL = ("finished", "incomplete", "failed", "cancelled")

Actor = Annotated[str, says(enum=("author", "operator"))]
RanAt = Annotated[Instant, says(description="when it was requested, or the time in the log")]


@dataclass(frozen=True, slots=True)
class Draws:
    """How the repeats of a run were sampled.

    temperature: in effect; None if it is not known: it is not in the log, or a server refused or dropped it.
    seed: the run's, from which every call's follows; None where it does not. is_one: repeats of a case share a seed, so
    that all of them are one draw. repeats: their indexes. is_external: an external server answered, whose seeds are
    shorter than those of our own engine.
    """

    temperature: float | None = 0.0
    seed: int | None = None
    is_one: bool = False
    repeats: tuple[int, ...] = ()
    is_external: bool = False

    @property
    def is_sampled(self) -> bool:
        return self.temperature is not None and self.temperature > 0

    @property
    def may_sample(self) -> bool:
        """Return whether repeats count as samples: the temperature is above 0, or not known."""
        return self.temperature is None or self.is_sampled

    @property
    def has_call_seeds(self) -> bool:
        """Return whether each call was sent its own seed, derived from the run's."""
        return self.seed is not None and (self.is_external or self.is_sampled)

    @property
    def words(self) -> str:
        """Describe it: "sampled, T = 0.7, seed 42", or "temperature not known"; "" if not sampled."""
        if self.temperature is None:
            return "temperature not known"
        if not self.is_sampled:
            return ""
        if self.is_one:
            return f"sampled, T = {self.temperature:g}, one draw"
        return f"sampled, T = {self.temperature:g}" + ("" if self.seed is None else f", seed {self.seed}")


class SuiteNamed(Contract):
    slug: str
    version: Number


class RepeatOfRow(RepeatScored):
    n_left_out: Annotated[
        int,
        says(
            minimum=0,
            description="responses that are no samples (docs/imports.md); one of them excludes the repeat from ranges",
        ),
    ]


class PinsHeld(Contract):
    held: bool | None


class Sampled(Contract):
    """How a run's tokens were sampled."""

    temperature: float
    seed: Annotated[int | None, says(minimum=0, description="null if the calls' seeds were not derived from one")]
    is_one_draw: Annotated[
        bool, says(description="whether all repeats of a case had one seed: their noise is then that of one repeat")
    ]

    @property
    def words(self) -> str:
        return Draws(self.temperature, self.seed, is_one=self.is_one_draw).words


class RunHead(ProfileNamed, Contract):
    """A run as it is listed."""

    id: Id
    suite: SuiteNamed
    endpoint: str
    profile: str
    profile_version: Annotated[Number, says(description="the endpoint that the run was started with")]
    sampled: Annotated[
        Sampled | None, says(description="null at temperature 0, or if the temperature is not in the log")
    ]
    model: str
    priority: Annotated[str, says(enum=PRIORITIES, description="order of waiting runs")] = optional
    status: RunStatus
    waiting_for: Annotated[
        WaitingFor | None, says(description="its paused endpoint, while it waits for that; null else")
    ]
    progress: Done
    repeats: tuple[RepeatOfRow, ...]
    range: Annotated[
        Range | None,
        says(description="lowest and highest score; null until finished, or with missing responses or several buckets"),
    ]
    bucket: Id | None
    n_buckets: Count
    backends: Annotated[
        tuple[str, ...],
        says(
            description="what the backends that answered are called on this endpoint, in the order of `bucket_scores`"
        ),
    ]
    bucket_scores: Annotated[
        tuple[Points | None, ...],
        says(description="of each bucket of a finished run of several, that of most responses first; else empty"),
    ]
    pooled: Annotated[
        Points | None,
        says(description="mean over all responses of a finished run of several buckets; nothing judges by it"),
    ]
    range_so_far: Range | None = page_only  # of a run at work, that of the repeats that have ended
    draws: Draws = page_only  # also where the temperature is 0, or a log does not say it
    batch_class: str = page_only  # of its bucket, "" where it has none
    fingerprint_digest: str = page_only
    is_reported: bool = page_only  # its stack is known from a log or an external server only

    @property
    def n_repeats(self) -> int:
        return len(self.repeats)

    @property
    def points(self) -> tuple[float | None, ...]:
        return tuple(repeat.score for repeat in self.repeats)

    @property
    def drawn_points(self) -> tuple[float | None, ...]:
        """The points of the repeats whose answers are all draws: those of its range."""
        return tuple(repeat.score for repeat in self.repeats if not repeat.n_left_out)

    @property
    def n_left_out(self) -> tuple[int, ...]:
        """By repeat: responses that are no draws (core.stats.live_answers)."""
        return tuple(repeat.n_left_out for repeat in self.repeats)

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL


class RunWarning(Note):
    """A warning of a run: `code` is stable, `text` is one sentence."""

    severity: Annotated[
        Severity, says(description="`warning`: the numbers may mislead or be missing; `info`: what they mean")
    ]
    must_act: Annotated[
        Actor | None,
        says(
            description="`author`: who asked for the run or made its suite; `operator`: who runs workers, engines and"
            " endpoints; null: nothing is to be done"
        ),
    ]


class RunRow(RunHead):
    """A run in a list: the same names as in `Run`, fewer of them."""

    warnings: tuple[RunWarning, ...]
    pins: PinsHeld
    labels: Labels
    created_at: Instant
    ran_at: RanAt
    finished_at: Instant | None
    cost: Annotated[
        Cost | None, says(description="of all its answers, once it has ended; null: no price, or counts were not kept")
    ]
    url: PageAddress


class SuiteOfRun(SuiteNamed):
    digest: Digest
    n_cases: Count


class Progress(Done):
    """What was tried so far; once the run has ended, the responses received."""

    rate_per_second: float | None
    eta_seconds: float | None


class Ahead(Contract):
    """What the queue gives to workers before the next shard of a run, at present."""

    n_shards: Count
    n_runs: Count
    n_responses: Count
    seconds: Annotated[float | None, says(description="at the recent rate of the pool's workers; null if not measured")]


class ShardOfRun(Contract):
    """One shard, for pages, or `n_shards` in a row. `attempt` counts from 1 once claimed, 0 before.

    `is_silent`: its worker has not been heard of for a lease, so that another takes it over soon. `n_failures` are
    attempts and starts that came to nothing; a queued shard is not claimed before `waits_until`. Several have the
    status that matters most of theirs; `n_retried` of them took more than one attempt.
    """

    first: int
    last: int
    n_cases: int
    status: str
    attempt: int
    n_done: int
    worker: str
    error: str
    is_silent: bool = False
    n_failures: int = 0
    waits_until: Instant | None = None
    n_shards: int = 1
    n_finished: int = 0
    n_retried: int = 0


class Repeat(RepeatOfRow):
    status: RunStatus
    n_missing: Count
    attempts: Count
    engine_processes: tuple[Id, ...]
    shards: tuple[ShardOfRun, ...] = page_only
    open_shards: tuple[ShardOfRun, ...] = page_only


class TargetedRepeat(Contract):
    """A repeat of only the chosen cases, those most likely to flip.

    It enters no score, range or noise of the run.
    """

    index: Number
    status: RunStatus
    n_cases: Annotated[int, says(minimum=0, description="cases that it decodes")]
    n_done: Count
    n_missing: Count
    shards: tuple[ShardOfRun, ...] = page_only
    open_shards: tuple[ShardOfRun, ...] = page_only


class Pin(Contract):
    name: str
    wanted: Any
    found: Any
    held: bool = page_only


class Pins(PinsHeld):
    broken: tuple[Pin, ...]
    every: tuple[Pin, ...] = page_only


class SeatsOfProcess(Seats):
    engine_process: Id


class Errors(Contract):
    n: Count
    by_code: dict[str, int]
    last: str | None


class ScorerNamed(Contract):
    id: Id
    digest: Digest


class ScorerOfRun(ScorerNamed):
    name: Annotated[str, says(description="its kind; of a scorer of your own with its name and its code's digest")]
    is_own: bool


class ScoresUnderScorer(Contract):
    """The points of each repeat under one scorer; the suite's own comes first."""

    scorer: ScorerOfRun
    repeats: tuple[Points | None, ...]
    range: Range | None
    range_so_far: Range | None = page_only


class Twin(Contract):
    """The newest earlier finished run of the same suite version, endpoint, profile, seed and bucket."""

    run: Id
    n_equal: Annotated[int, says(minimum=0, description="traces that are the same to the bit")]
    n_compared: Count


class ProcessOfRun(Contract):
    """One engine process of a run, for pages: the repeats that it decoded, its self-checks, its seats."""

    id: Id
    worker: str
    started_at: Instant
    start_seconds: float
    repeats: tuple[int, ...]
    n_self_checks: int
    self_checks_same: bool
    seats: EngineSeats | None
    last_words: str


class EventOfRun(Contract):
    """One line of a run's history, for pages. `what` is the text without the cases that it is about."""

    at: Instant
    level: str
    code: str
    text: str
    what: str


class StepToMend(Contract):
    """One thing to do about it. command: to type for it, "" where there is none."""

    text: str
    command: str = ""


class Trouble(Contract):
    """Why a run failed, lacks every answer, or waits for more than its turn, and what to do about it."""

    code: Annotated[
        str,
        says(
            enum=(
                *("key_unreadable", "endpoint_refused", "engine_start_failed", "failed", "no_answer", "cancelled"),
                *("endpoint_rests", "no_worker"),
            )
        ),
    ]
    cause: Annotated[str, says(description="one sentence")]
    steps: tuple[StepToMend, ...]


class LogOfRun(Contract):
    """The log that a run was read from, for pages: its files by name, and notes on what it lacks."""

    id: Id
    tool: str
    files: tuple[str, ...]
    notes: tuple[str, ...]
    created_at: Instant

    @property
    def has_texts(self) -> bool:
        """Return whether it has answers that a scorer can read; rollouts are token ids."""
        return self.tool != "rollouts"


class Run(RunHead):
    """A run in full."""

    suite: SuiteOfRun
    progress: Progress
    gives_up_at: Annotated[
        Instant | None,
        says(description="while it waits for its endpoint: when its first cases are given up if no call is answered"),
    ]
    ahead: Annotated[Ahead | None, says(description="null unless it has waiting shards and none being decoded")]
    repeats: Annotated[tuple[Repeat, ...], says(description="of all cases")]
    targeted: tuple[TargetedRepeat, ...]
    is_shuffled: Annotated[bool, says(description="cases are shuffled in each repeat")]
    is_restarted: Annotated[bool, says(description="each repeat has its own engine process")]
    buckets: tuple[Bucket, ...]
    noise: Noise
    settings: Annotated[
        tuple[SettingFact, ...], says(description="facts per setting; while running, the requested values")
    ]
    pins: Pins
    seats: tuple[SeatsOfProcess, ...]
    warnings: tuple[RunWarning, ...]
    errors: Errors
    trouble: Annotated[Trouble | None, says(description="null where nothing is wrong, or something was answered")]
    endings: Annotated[
        dict[str, int],
        says(description="incomplete answers by ending: `cut`, `filtered`, `refused`, `empty`, `unknown`"),
    ]
    scores: tuple[ScoresUnderScorer, ...]
    waits_for: Annotated[str | None, says(description="what scores it, while it has all answers and no scores")]
    judge_of: Annotated[Id | None, says(description="the run whose answers a judge scores in this one")]
    twin: Twin | None
    cost: Annotated[Cost | None, says(description="so far; null: its endpoint has no price")]
    repeat_costs: Annotated[
        tuple[Cost, ...], says(description="of each repeat with an answer, targeted ones last; empty without a price")
    ]
    stored_bytes: Annotated[int, says(minimum=0, description="traces and packed columns, without texts")]
    labels: Labels
    created_by: str | None
    created_at: Instant
    ran_at: RanAt
    started_at: Instant | None
    finished_at: Instant | None
    url: PageAddress

    n_cases_unscored: int = page_only  # without a score in any repeat
    processes: tuple[ProcessOfRun, ...] = page_only
    events: tuple[EventOfRun, ...] = page_only
    sampling: dict[str, Any] = page_only
    asked_model: str = page_only  # by the name that its endpoint asks for
    manifest: dict[str, Any] = page_only  # of the newest engine process, host part included
    request_body: dict[str, Any] = page_only  # of the `POST /runs/` that asks for the same again
    waiting: str = page_only  # why no worker has it, "" if there is nothing to explain
    is_cancel_wanted: bool = page_only
    source: LogOfRun | None = page_only

    @property
    def points_per_case(self) -> float:
        return 100 / self.suite.n_cases

    @property
    def every_repeat(self) -> tuple[Repeat | TargetedRepeat, ...]:
        """Return the repeats of all cases, then the targeted ones."""
        return (*self.repeats, *self.targeted)

    @property
    def row(self) -> RunRow:
        """The run as lists have it."""
        return RunRow(**{name: getattr(self, name) for name in RunRow.model_fields})


class RunPair(Contract):
    """Two runs whose repeats are decoded in turn."""

    baseline: Run
    candidate: Run


class Rerun(Contract):
    """The sides of a release that run again, in turn where both do; null: not again."""

    baseline: Run | None
    candidate: Run | None


class Rescored(Contract):
    scorer: ScorerNamed
    run: Run


class RunCost(Contract):
    """The estimated cost of passes over a suite. Null: no earlier run to estimate from."""

    n_runs: Annotated[int, says(minimum=0, description="passes over the suite")]
    n_starts: Annotated[int, says(minimum=0, description="of engines")]
    tokens: float | None
    minutes: float | None


class JudgeEstimate(Contract):
    """What a judge's run would take next to the run that it scores."""

    endpoint: str
    n_calls: Annotated[Count, says(description="at the most: equal answers are chosen once to be judged twice more")]
    tokens: Count | None
    minutes: Annotated[float | None, says(minimum=0)]
    cost: Annotated[CostEstimate | None, says(description="null: the judge's endpoint has no price")]


class RunEstimate(Contract):
    """What a run would take, estimated from earlier runs. Null: nothing to estimate from."""

    n_calls: Count
    tokens: Count | None
    minutes: Annotated[float | None, says(minimum=0, description="engine minutes, or minutes of calls")]
    paced_by: Annotated[str | None, says(description="another suite whose run gave the pace, scaled by cases")]
    cost: Annotated[CostEstimate | None, says(description="null: the endpoint has no price")]
    judge: Annotated[JudgeEstimate | None, says(description="its judge's calls, which `n_calls` does not count")]
    sentence: str


def experiment_of(labels: Mapping[str, str]) -> str | None:
    """Return the id of the experiment that a run's labels name, None without one.

    Labels are user input and may name any experiment.
    """
    label = labels.get(EXPERIMENT_LABEL, "")
    return label if re.fullmatch(r"[0-9]{1,18}", label, re.ASCII) else None
