"""Everything stored about one run that its page shows, read in a fixed number of queries, few where it is polled."""

import functools
from collections import Counter, defaultdict
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from numpy.typing import NDArray

from evalboard.core import columns
from evalboard.core.errors import NotFound
from runs import pair_facts
from runs.imported import NOT_IN_LOG
from runs.models import (
    Bucket,
    Case,
    CaseColumns,
    EngineProcess,
    Event,
    Repeat,
    RepeatScore,
    Response,
    Run,
    Shard,
    Worker,
)
from runs.selectors.health import doorbell_problem
from runs.selectors.run import TwinRun
from runs.selectors.run_list import RELATED
from runs.selectors.run_scores import case_buckets, digest_table
from runs.selectors.run_state import RunState

EVENTS_SHOWN = 200
# What has settled of runs that are polled is kept in memory, about 40 bytes a response.
RUNS_REMEMBERED, MOST_REMEMBERED = 128, 10_000


@dataclass(frozen=True, slots=True)
class RepeatFacts:
    """One repeat. `case_buckets` is int64[n_cases] of bucket ids, -1 where missing; None until it has ended.

    texts: uint8[n_cases, 16], digests, None likewise. marks: uint8[n_cases], as core.live_answers has them, None
    likewise; n_left_out: responses that are no draws. flip_chances: float32[n_cases], of the first repeat alone.
    errors: of the responses that are done; what a log lacks never came to an error.
    """

    id: int
    index: int
    status: str
    finished_at: datetime | None
    shards: tuple[Shard, ...]
    process_ids: tuple[int, ...]
    case_buckets: NDArray[np.int64] | None
    bucket_ids: tuple[int, ...]
    texts: NDArray[np.uint8] | None
    marks: NDArray[np.uint8] | None
    n_left_out: int
    flip_chances: NDArray[np.float32] | None
    errors: Counter[str]

    @property
    def n_done(self) -> int:
        return sum(shard.n_done for shard in self.shards)


@dataclass(frozen=True, slots=True)
class Settled:
    """What changes only where `run_state.RunState.settled` does, and when it was read; the repeats come without shards.

    `scores` maps a scorer's id to the scores of the repeats (by index) that it has scored; `groups` a case's index
    to its group, where it has one.
    """

    run: Run
    now: datetime
    repeats: tuple[RepeatFacts, ...]
    processes: tuple[EngineProcess, ...]
    buckets: dict[int, Bucket]
    scores: dict[int, dict[int, RepeatScore]]
    groups: dict[int, str]
    events: tuple[Event, ...]
    n_unvouched: int
    stored_bytes: int
    twin: TwinRun | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts(Settled):
    """With the shards, and what follows from the clock.

    `alive` are the workers of the run's pool, `busy_ids` those at a shard of any run. They and the doorbell are asked
    for only while the run waits for somebody to hear it.
    """

    alive: tuple[Worker, ...]
    busy_ids: frozenset[int]
    doorbell_problem: str | None

    @property
    def n_cases(self) -> int:
        return self.run.suite_version.n_cases

    @property
    def n_done(self) -> int:
        return sum(repeat.n_done for repeat in self.repeats)

    @property
    def n_in(self) -> int:
        """While the run is at work, the responses that are done; once it has ended, those that came to no error."""
        return self.n_done - self.errors.total() if self.run.is_terminal else self.n_done

    @property
    def n_total(self) -> int:
        return len(self.repeats) * self.n_cases

    @property
    def errors(self) -> Counter[str]:
        return sum((repeat.errors for repeat in self.repeats), Counter())

    @property
    def own_scores(self) -> dict[int, RepeatScore]:
        return self.scores.get(self.run.suite_version.scorer_id, {})


def read(run_id: int, *, state: RunState | None = None) -> RunFacts:
    """Raises NotFound. state: as it was just read, of a run that is polled; what has settled is then not read again."""
    settled = _read_settled(run_id) if state is None else _settled(state)
    run = settled.run
    shards: dict[int, list[Shard]] = defaultdict(list)
    for shard in Shard.objects.filter(repeat__run=run).select_related("owner").order_by("repeat", "first"):
        shards[shard.repeat_id].append(shard)
    repeats = tuple(replace(repeat, shards=tuple(shards[repeat.id])) for repeat in settled.repeats)
    waits = is_waiting(run, repeats)
    alive = _alive(run) if waits else ()
    known = {each.name: getattr(settled, each.name) for each in fields(settled)}
    return RunFacts(
        **known | {"repeats": repeats, "now": settled.now if state is None else state.at},
        alive=alive,
        busy_ids=_busy_ids(alive),
        doorbell_problem=doorbell_problem() if waits else None,
    )


def is_waiting(run: Run, repeats: tuple[RepeatFacts, ...]) -> bool:
    """Whether there is work and nobody at work."""
    shards = [shard.status for repeat in repeats for shard in repeat.shards]
    return not run.is_terminal and Shard.Status.QUEUED in shards and Shard.Status.RUNNING not in shards


def _settled(state: RunState) -> Settled:
    """What was read when the run's state was the same; of runs that would fill the memory it is read anew."""
    if state.n_responses > MOST_REMEMBERED:
        return _read_settled(state.run_id)
    return _remembered(state.run_id, state.settled)


@functools.lru_cache(maxsize=RUNS_REMEMBERED)
def _remembered(run_id: int, settled: str) -> Settled:  # the state is the key alone
    return _read_settled(run_id)


def _read_settled(run_id: int) -> Settled:
    run = (
        Run.objects.select_related(
            *RELATED, "suite_version__suite__policy", "suite_version__scorer", "created_by", "source"
        )
        .annotate(now=Now())
        .filter(pk=run_id)
        .first()
    )
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    linked = Repeat.engine_processes.through.objects.filter(repeat__run=run).values("engineprocess")
    processes = EngineProcess.objects.filter(pk__in=linked).select_related("worker", "bucket").order_by("id")
    repeats = _repeats(run)
    bucket_ids = {bucket for repeat in repeats for bucket in repeat.bucket_ids}
    buckets = Bucket.objects.filter(Q(pk__in=bucket_ids) | Q(runs=run)).select_related("model", "fingerprint")
    events = list(Event.objects.filter(run=run).order_by("-id")[:EVENTS_SHOWN])
    n_unvouched, stored_bytes = _sums(run)
    return Settled(
        run=run,
        now=run.now,
        repeats=repeats,
        processes=tuple(processes),
        buckets={bucket.pk: bucket for bucket in buckets.distinct().order_by("id")},
        scores=_scores(run),
        groups=dict(_grouped(run).values_list("index", "group")) if run.is_terminal else {},
        events=tuple(reversed(events)),
        n_unvouched=n_unvouched,
        stored_bytes=stored_bytes,
        twin=_twin(run),
    )


def _repeats(run: Run) -> tuple[RepeatFacts, ...]:
    """Without their shards."""
    links: dict[int, list[int]] = defaultdict(list)
    decoded_by = Repeat.engine_processes.through.objects.filter(repeat__run=run).order_by("engineprocess")
    for repeat_id, process_id in decoded_by.values_list("repeat", "engineprocess"):
        links[repeat_id].append(process_id)
    errors: dict[int, Counter[str]] = defaultdict(Counter)
    missing = Response.objects.filter(repeat__run=run).exclude(error_code__in=("", NOT_IN_LOG)).order_by()
    for repeat_id, code, n in missing.values_list("repeat", "error_code").annotate(n=Count("id")):
        errors[repeat_id][code] = n
    packed = {row.repeat_id: row for row in CaseColumns.objects.filter(repeat__run=run).defer("trace_digests")}
    return tuple(
        RepeatFacts(
            id=repeat.pk,
            index=repeat.index,
            status=repeat.status,
            finished_at=repeat.finished_at,
            shards=(),
            process_ids=tuple(links[repeat.pk]),
            errors=errors[repeat.pk],
            **_unpacked(packed.get(repeat.pk)),
        )
        for repeat in Repeat.objects.filter(run=run).order_by("index")
    )


def _unpacked(row: CaseColumns | None) -> dict[str, Any]:
    if row is None:
        unknown = dict.fromkeys(("case_buckets", "texts", "marks", "flip_chances"))
        return {**unknown, "bucket_ids": (), "n_left_out": 0}
    texts = digest_table(row.text_digests)
    return {
        "case_buckets": case_buckets(row.buckets, row.bucket_ids),
        "bucket_ids": tuple(row.bucket_ids),
        "texts": texts,
        "marks": columns.unpack_marks(None if row.marks is None else bytes(row.marks), len(texts)),
        "n_left_out": row.n_left_out,
        "flip_chances": None if row.flip_chances is None else columns.unpack_chances(bytes(row.flip_chances)),
    }


def _scores(run: Run) -> dict[int, dict[int, RepeatScore]]:
    """By scorer, those that scored first coming first; reasons stay in the database."""
    found: dict[int, dict[int, RepeatScore]] = {}
    rows = RepeatScore.objects.filter(repeat__run=run).select_related("scorer", "repeat").defer("reasons")
    for row in rows.order_by("id"):
        found.setdefault(row.scorer_id, {})[row.repeat.index] = row
    return found


def _grouped(run: Run) -> "QuerySet[Case]":
    return Case.objects.filter(suite_version=run.suite_version_id).exclude(group="")


# Lengths are what PostgreSQL knows without reading the values.
_SUMS = """
SELECT (SELECT count(*) FROM runs_response response JOIN runs_repeat repeat ON repeat.id = response.repeat_id
        WHERE repeat.run_id = %(run)s AND NOT response.is_vouched),
       (SELECT coalesce(sum(octet_length(data)), 0) FROM runs_traceblock WHERE run_id = %(run)s)
     + (SELECT coalesce(sum(octet_length(text_digests) + octet_length(trace_digests) + octet_length(buckets)
                            + coalesce(octet_length(flip_chances), 0)), 0)
        FROM runs_casecolumns cases JOIN runs_repeat repeat ON repeat.id = cases.repeat_id
        WHERE repeat.run_id = %(run)s)
     + (SELECT coalesce(sum(octet_length(scores) + octet_length(reasons)), 0)
        FROM runs_repeatscore score JOIN runs_repeat repeat ON repeat.id = score.repeat_id
        WHERE repeat.run_id = %(run)s)
"""


def _sums(run: Run) -> tuple[int, int]:
    """How many responses are not vouched for, and how many bytes traces and columns take: one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_SUMS, {"run": run.pk})
        n_unvouched, stored_bytes = cursor.fetchone()
    return int(n_unvouched), int(stored_bytes)


def _twin(run: Run) -> TwinRun | None:
    """The newest earlier finished run of the same suite version, endpoint, profile, seed and bucket, trace by trace.

    Where nothing is drawn the seed is the profile's, whether the run has it or not. A log has too little to call two
    runs twins.
    """
    if run.bucket_id is None or run.source_id is not None:
        return None
    earlier = Run.objects.filter(
        pk__lt=run.pk,
        status=Run.Status.FINISHED,
        suite_version=run.suite_version_id,
        endpoint=run.endpoint_id,
        profile=run.profile_id,
        bucket=run.bucket_id,
    )
    if pair_facts.draws_of(run).is_sampled:
        earlier = earlier.filter(seed=run.seed)
    twin_id = earlier.order_by("-id").values_list("id", flat=True).first()
    if twin_id is None:
        return None
    digests: dict[int, dict[int, NDArray[np.uint8]]] = defaultdict(dict)
    packed = CaseColumns.objects.filter(repeat__run__in=(run.pk, twin_id))
    for run_id, index, data in packed.values_list("repeat__run", "repeat__index", "trace_digests"):
        digests[run_id][index] = digest_table(data)
    n_equal = n_compared = 0
    for index in digests[run.pk].keys() & digests[twin_id].keys():
        mine, other = digests[run.pk][index], digests[twin_id][index]
        has_both = mine.any(axis=1) & other.any(axis=1)
        n_compared += int(has_both.sum())
        n_equal += int(((mine == other).all(axis=1) & has_both).sum())
    return TwinRun(run_id=twin_id, n_equal=n_equal, n_compared=n_compared) if n_compared else None


def _alive(run: Run) -> tuple[Worker, ...]:
    """The workers of the run's pool heard of within a lease, by the database's clock."""
    lease = timedelta(seconds=settings.LEASE_SECONDS)
    return tuple(Worker.objects.filter(pool=run.endpoint.pool, stopped_at=None, seen_at__gt=Now() - lease))


def _busy_ids(workers: tuple[Worker, ...]) -> frozenset[int]:
    at_work = Shard.objects.filter(status=Shard.Status.RUNNING, owner__in=workers)
    return frozenset(owner_id for owner_id in at_work.values_list("owner", flat=True) if owner_id is not None)
