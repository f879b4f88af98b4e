"""Read all that a run's page shows, in a fixed number of queries, and few for polling."""

import functools
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import Count, F, OuterRef
from django.db.models.functions import Now

from evalboard.contract.figures import RunFigures
from evalboard.contract.parts import Pause
from evalboard.contract.run import Ahead, Twin
from evalboard.core.trace import NOTABLE
from runs import models
from runs.health import doorbell_problem
from runs.models import (
    BucketRecord,
    EngineProcess,
    Event,
    JudgingRecord,
    RepeatRecord,
    RepeatScore,
    ResponseRecord,
    RunRecord,
    ScoringRecord,
    Shard,
    SuiteVersionRecord,
    WorkerRecord,
)
from runs.run import figures
from runs.run.read_deletions import list_deletions
from runs.run.read_list import RELATED, paused_endpoint
from runs.run.read_shards import FirstStrays, RepeatWork, first_strays, read_work
from runs.run.read_state import RunState
from runs.store import NOT_IN_LOG, require_row
from runs.work import find_uncertified, own_open_judgings, own_open_scorings, shards_ahead

EVENTS_SHOWN = 200
RUNS_REMEMBERED = 128  # of those that are polled, what has settled, in memory


@dataclass(frozen=True, slots=True)
class RepeatFacts:
    """One repeat. packed_as: its columns' digests, once ended. n_left_out: responses that are no samples.

    errors: of the responses that are done; what a log lacks never came to an error. n_chosen: of a targeted repeat, the
    cases that it decodes; None for one of all cases.
    """

    id: int
    index: int
    status: str
    finished_at: datetime | None
    work: RepeatWork
    process_ids: tuple[int, ...]
    packed_as: str | None
    bucket_ids: tuple[int, ...]
    n_left_out: int
    errors: Counter[str]
    n_chosen: int | None

    @property
    def n_done(self) -> int:
        return self.work.n_done


@dataclass(frozen=True, slots=True)
class ServedFacts:
    """The facts for the buckets of a run: its repeats of all cases.

    `scores` maps a scorer's id to the scores of the repeats (by index) that it has scored, their columns left in the
    database.
    """

    run: RunRecord
    repeats: tuple[RepeatFacts, ...]
    buckets: dict[int, BucketRecord]
    scores: dict[int, dict[int, RepeatScore]]
    figures: RunFigures
    strays: FirstStrays

    @property
    def n_cases(self) -> int:
        return self.run.suite_version.n_cases

    @property
    def n_done(self) -> int:
        return sum(repeat.n_done for repeat in self.repeats)

    @property
    def errors(self) -> Counter[str]:
        return sum((repeat.errors for repeat in self.repeats), Counter())

    @property
    def own_scores(self) -> dict[int, RepeatScore]:
        return self.scores.get(self.run.suite_version.scorer_id, {})


@dataclass(frozen=True, slots=True)
class Settled(ServedFacts):
    """What changes only with `run_state.RunState.settled`, and when it was read; repeats lack their work.

    targeted: the repeats of chosen cases, which enter no score, range or noise of the run.
    """

    now: datetime
    targeted: tuple[RepeatFacts, ...]
    processes: tuple[EngineProcess, ...]
    events: tuple[Event, ...]
    n_unvouched: int
    n_truncated: int
    endings: Mapping[str, int]
    stored_bytes: int
    deletions: Sequence[str]
    twin: Twin | None
    stored_figures: models.RunFiguresRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts(Settled):
    """With the work, and what follows from the clock.

    `alive` are the workers of the run's pool, `busy_ids` those at a shard of any run. They, the doorbell and what
    stands before the run are asked for only while it waits for somebody to hear it. `uncertified` are the hosts that
    decoded it under `invariant` without a certificate. `scorings`: of repeats that wait for a worker to score them,
    once all responses are there. `judging`: that of a run that waits for its judge.
    """

    alive: tuple[WorkerRecord, ...]
    busy_ids: frozenset[int]
    doorbell_problem: str | None
    ahead: Ahead | None
    uncertified: tuple[str, ...]
    scorings: tuple[ScoringRecord, ...]
    judging: JudgingRecord | None

    @property
    def every(self) -> tuple[RepeatFacts, ...]:
        """Return the repeats of all cases, then the targeted ones."""
        return (*self.repeats, *self.targeted)

    @property
    def n_decoded(self) -> int:
        """Count the responses that are done, those of targeted repeats too."""
        return sum(repeat.n_done for repeat in self.every)

    @property
    def all_errors(self) -> Counter[str]:
        return sum((repeat.errors for repeat in self.every), Counter())

    @property
    def n_in(self) -> int:
        """Return the responses that are done; once the run has ended, those without an error."""
        return self.n_decoded - self.all_errors.total() if self.run.is_terminal else self.n_decoded

    @property
    def pause(self) -> dict[str, Any] | None:
        """Return why its endpoint is not called, and until when, as `contract.parts.Pause` has it."""
        paused = paused_endpoint(self.run, self.now)
        return None if paused is None else paused.model_dump(include=set(Pause.model_fields))

    @property
    def n_targeted(self) -> int:
        return sum(repeat.n_chosen or 0 for repeat in self.targeted)

    @property
    def n_total(self) -> int:
        return len(self.repeats) * self.n_cases + self.n_targeted


def read(run_id: int, *, state: RunState | None = None) -> RunFacts:
    """Read a run's facts. Raises NotFound.

    state: as it was just read, of a run that is polled; what has settled is then not read again.
    """
    settled = _read_settled(run_id) if state is None else _remembered(run_id, state.settled)
    run = settled.run
    every = _with_work((*settled.repeats, *settled.targeted), read_work([run_id]))
    is_decoded = not any(repeat.work.n_queued or repeat.work.n_running for repeat in every)
    wait_for_scores: tuple[ScoringRecord, ...] = ()
    judging = None
    if is_decoded and not run.is_terminal:
        wait_for_scores = tuple(own_open_scorings(run).select_related("scorer").order_by("pk"))
        judging = own_open_judgings(run).select_related("scorer", "judge_run__suite_version").first()
    waits = is_waiting(run, every) or bool(wait_for_scores)
    parts = dict(zip(("repeats", "targeted"), _split(every), strict=True))
    alive = _alive(run) if waits else ()
    known = {each.name: getattr(settled, each.name) for each in fields(settled)}
    return RunFacts(
        **known | parts | {"now": settled.now if state is None else state.at},
        alive=alive,
        busy_ids=_busy_ids(alive) if alive else frozenset(),
        doorbell_problem=doorbell_problem() if waits else None,
        ahead=shards_ahead(run) if waits and not wait_for_scores else None,
        uncertified=find_uncertified(settled.processes),
        scorings=wait_for_scores,
        judging=judging,
    )


def read_served(run_ids: Collection[int]) -> dict[int, ServedFacts]:
    """Read facts of several runs, by their ids, in a fixed number of queries."""
    runs = RunRecord.objects.select_related(*RELATED, "suite_version__suite__policy").in_bulk(run_ids)
    repeats = {pk: _split(facts)[0] for pk, facts in _repeats(run_ids).items()}
    every = [repeat for facts in repeats.values() for repeat in facts]
    served = {pk: {bucket for repeat in repeats[pk] for bucket in repeat.bucket_ids} for pk in runs}
    for run in runs.values():
        if run.bucket_id is not None:
            served[run.pk].add(run.bucket_id)
    wanted = BucketRecord.objects.filter(pk__in=set().union(*served.values())).order_by("id")
    buckets = list(wanted.select_related("model", "fingerprint"))
    scores = _scores(run_ids)
    by_repeat = {repeat.id: repeat for repeat in _with_work(every, read_work(run_ids))}
    stored_figures = figures.kept_rows({run: _packed(run, repeats[pk], scores[pk]) for pk, run in runs.items()})
    strays = first_strays(runs.values())
    return {
        pk: ServedFacts(
            run=run,
            repeats=tuple(by_repeat[repeat.id] for repeat in repeats[pk]),
            buckets={bucket.pk: bucket for bucket in buckets if bucket.pk in served[pk]},
            scores=scores[pk],
            figures=RunFigures.from_stored(stored_figures[pk].figures),
            strays=strays,
        )
        for pk, run in runs.items()
    }


def _with_work(repeats: Iterable[RepeatFacts], work: Mapping[int, RepeatWork]) -> tuple[RepeatFacts, ...]:
    return tuple(replace(repeat, work=work.get(repeat.id, RepeatWork())) for repeat in repeats)


def is_waiting(run: RunRecord, repeats: tuple[RepeatFacts, ...]) -> bool:
    """Return whether there is queued work and no worker on it."""
    is_queued = any(repeat.work.n_queued for repeat in repeats)
    return not run.is_terminal and is_queued and not any(repeat.work.n_running for repeat in repeats)


@functools.lru_cache(maxsize=RUNS_REMEMBERED)
def _remembered(run_id: int, settled: str) -> Settled:  # the state is the key alone
    return _read_settled(run_id)


def _read_settled(run_id: int) -> Settled:
    related = ("endpoint", "profile", "created_by", "source")
    run = require_row(
        RunRecord.objects.select_related(*related).annotate(now=Now()).filter(pk=run_id), f"There is no run {run_id}."
    )
    # Apart from the run: the fewer joins, the sooner a statement is planned.
    run.suite_version = SuiteVersionRecord.objects.select_related("suite__policy").get(pk=run.suite_version_id)
    linked = RepeatRecord.engine_processes.through.objects.filter(repeat__run=run).values("engineprocess")
    processes = EngineProcess.objects.filter(pk__in=linked).select_related("worker", "bucket").order_by("id")
    repeats, targeted = _split(_repeats([run_id])[run_id])
    bucket_ids = {bucket for repeat in repeats for bucket in repeat.bucket_ids}
    bucket_ids |= {run.bucket_id} if run.bucket_id is not None else set()
    served = BucketRecord.objects.filter(pk__in=bucket_ids).select_related("model", "fingerprint").order_by("id")
    buckets = {bucket.pk: bucket for bucket in served}
    run.bucket = buckets[run.bucket_id] if run.bucket_id is not None else None
    events = list(Event.objects.filter(run=run).order_by("-id")[:EVENTS_SHOWN])
    n_unvouched, n_truncated, endings, stored_bytes, n_deletions = _sums(run)
    scores = _scores([run_id])[run_id]
    stored_figures = figures.kept_rows({run: _packed(run, repeats, scores)}, with_cases=True)[run_id]
    return Settled(
        run=run,
        now=run.now,
        repeats=repeats,
        targeted=targeted,
        processes=tuple(processes),
        buckets=buckets,
        scores=scores,
        figures=RunFigures.from_stored(stored_figures.figures),
        strays=first_strays([run]),
        stored_figures=stored_figures,
        events=tuple(reversed(events)),
        n_unvouched=n_unvouched,
        n_truncated=n_truncated,
        endings=endings,
        stored_bytes=stored_bytes,
        deletions=list_deletions(run) if n_deletions else (),
        twin=figures.read_twin(run, stored_figures),
    )


def _repeats(run_ids: Collection[int]) -> dict[int, tuple[RepeatFacts, ...]]:
    """By run, without their work; their packed columns stay in the database."""
    links = RepeatRecord.engine_processes.through.objects.filter(repeat=OuterRef("pk")).order_by("engineprocess")
    stored = (
        RepeatRecord.objects.filter(run__in=run_ids)
        .order_by("run", "index")
        .annotate(
            process_ids=ArraySubquery(links.values("engineprocess")),
            packed_as=F("columns__digest"),
            buckets=F("columns__bucket_ids"),
            left_out=F("columns__n_left_out"),
        )
    )
    errors: dict[int, Counter[str]] = defaultdict(Counter)
    missing = ResponseRecord.objects.filter(repeat__run__in=run_ids).exclude(error_code__in=("", NOT_IN_LOG)).order_by()
    for repeat_id, code, n in missing.values_list("repeat", "error_code").annotate(n=Count("id")):
        errors[repeat_id][code] = n
    repeats: dict[int, tuple[RepeatFacts, ...]] = dict.fromkeys(run_ids, ())
    for repeat in stored:
        facts = RepeatFacts(
            id=repeat.pk,
            index=repeat.index,
            status=repeat.status,
            finished_at=repeat.finished_at,
            work=RepeatWork(),
            process_ids=tuple(repeat.process_ids),
            packed_as=repeat.packed_as,
            bucket_ids=tuple(repeat.buckets or ()),
            n_left_out=repeat.left_out or 0,
            errors=errors[repeat.pk],
            n_chosen=None if repeat.cases is None else int.from_bytes(repeat.cases, "little").bit_count(),
        )
        repeats[repeat.run_id] += (facts,)
    return repeats


def _split(every: Iterable[RepeatFacts]) -> tuple[tuple[RepeatFacts, ...], tuple[RepeatFacts, ...]]:
    """Return the repeats of all cases, and the targeted ones."""
    facts = tuple(every)
    whole = tuple(repeat for repeat in facts if repeat.n_chosen is None)
    return whole, tuple(repeat for repeat in facts if repeat.n_chosen is not None)


def _packed(
    run: RunRecord, repeats: Iterable[RepeatFacts], scores: Mapping[int, Mapping[int, RepeatScore]]
) -> tuple[figures.Packed, ...]:
    own = scores.get(run.suite_version.scorer_id, {})
    return tuple(
        figures.Packed(
            repeat_id=repeat.id,
            index=repeat.index,
            columns=repeat.packed_as,
            score=own[repeat.index].digest if repeat.index in own else None,
            bucket_ids=repeat.bucket_ids,
        )
        for repeat in repeats
    )


def _scores(run_ids: Collection[int]) -> dict[int, dict[int, dict[int, RepeatScore]]]:
    """Return scores by run and scorer, of complete repeats, oldest scorer first, without columns."""
    scores: dict[int, dict[int, dict[int, RepeatScore]]] = {run_id: {} for run_id in run_ids}
    rows = RepeatScore.objects.filter(repeat__run__in=run_ids, repeat__cases=None).select_related("scorer", "repeat")
    for row in rows.defer("scores", "reasons", "answers").order_by("id"):
        scores[row.repeat.run_id].setdefault(row.scorer_id, {})[row.repeat.index] = row
    return scores


# Lengths are what PostgreSQL knows without reading the values.
_SUMS = """
SELECT (SELECT count(*) FROM runs_response response JOIN runs_repeat repeat ON repeat.id = response.repeat_id
        WHERE repeat.run_id = %(run)s AND NOT response.is_vouched),
       (SELECT count(*) FROM runs_response response JOIN runs_repeat repeat ON repeat.id = response.repeat_id
        WHERE repeat.run_id = %(run)s AND response.is_truncated),
       (SELECT coalesce(json_object_agg(ending, n), '{}')::text
        FROM (SELECT ending, count(*) AS n FROM runs_response response JOIN runs_repeat repeat
              ON repeat.id = response.repeat_id
              WHERE repeat.run_id = %(run)s AND response.ending = ANY(%(endings)s) GROUP BY ending) AS ended),
       (SELECT coalesce(sum(octet_length(data)), 0) FROM runs_traceblock WHERE run_id = %(run)s)
     + (SELECT coalesce(sum(octet_length(text_digests) + octet_length(trace_digests) + octet_length(buckets)
                            + coalesce(octet_length(flip_chances), 0)), 0)
        FROM runs_casecolumns cases JOIN runs_repeat repeat ON repeat.id = cases.repeat_id
        WHERE repeat.run_id = %(run)s)
     + (SELECT coalesce(sum(octet_length(scores) + octet_length(reasons)), 0)
        FROM runs_repeatscore score JOIN runs_repeat repeat ON repeat.id = score.repeat_id
        WHERE repeat.run_id = %(run)s),
       (SELECT count(*) FROM runs_deletion deletion
        WHERE deletion.run = %(run)s OR deletion.run IS NULL AND deletion.suite_version_id = %(version)s)
"""


def _sums(run: RunRecord) -> tuple[int, int, dict[str, int], int, int]:
    """Return numbers of unvouched, truncated and notable responses, stored bytes, and deletions."""
    with connection.cursor() as cursor:
        cursor.execute(_SUMS, {"run": run.pk, "version": run.suite_version_id, "endings": list(NOTABLE)})
        n_unvouched, n_truncated, ended, stored_bytes, n_deletions = cursor.fetchone()
    by_ending = json.loads(ended)
    endings = {str(ending): by_ending[ending] for ending in NOTABLE if ending in by_ending}
    return int(n_unvouched), int(n_truncated), endings, int(stored_bytes), int(n_deletions)


def _alive(run: RunRecord) -> tuple[WorkerRecord, ...]:
    """The workers of the run's pool heard of within a lease, by the database's clock."""
    lease = timedelta(seconds=settings.LEASE_SECONDS)
    return tuple(WorkerRecord.objects.filter(pool=run.endpoint.pool, stopped_at=None, seen_at__gt=Now() - lease))


def _busy_ids(workers: tuple[WorkerRecord, ...]) -> frozenset[int]:
    at_work = Shard.objects.filter(status=Shard.Status.RUNNING, owner__in=workers)
    return frozenset(owner_id for owner_id in at_work.values_list("owner", flat=True) if owner_id is not None)
