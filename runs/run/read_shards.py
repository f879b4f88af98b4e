"""Read a run's shards, and other builds' responses: the first of each bucket, and all in pages."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Q

from evalboard.contract.bucket import StrayResponse
from evalboard.contract.parts import FingerprintNamed
from evalboard.contract.run import RunWarning, ShardOfRun
from evalboard.wording.run_warnings import WarnedRun, list_warnings
from runs.models import BucketRecord, Case, RunRecord, Shard, Stray
from runs.pairs.pair_facts import describe_fingerprint, names_on
from runs.store import require_row

SHARDS_DRAWN, LINES_DRAWN = 80, 40  # of a repeat: more shards than the one are drawn as the other, several together

OPEN = Q(status=Shard.Status.RUNNING) | Q(status=Shard.Status.QUEUED) & (Q(n_crashes__gt=0) | Q(n_failed_starts__gt=0))

_TOGETHER = """
SELECT shard.repeat_id, min(shard.first), max(shard.last),
       (%(gravest)s::text[])[min(array_position(%(gravest)s::text[], shard.status::text))], max(shard.attempt),
       sum(coalesce(shard.n_chosen, shard.last - shard.first + 1)), sum(shard.n_done),
       sum(shard.n_crashes + shard.n_failed_starts), count(*), count(*) FILTER (WHERE shard.status = 'finished'),
       count(*) FILTER (WHERE shard.attempt > 1)
  FROM runs_shard shard JOIN runs_repeat repeat ON repeat.id = shard.repeat_id
 WHERE repeat.run_id = %(run)s
 GROUP BY shard.repeat_id, shard.first / %(n_cases)s ORDER BY shard.repeat_id, min(shard.first)
"""
_GRAVEST = ["failed", "running", "cancelled", "queued", "finished"]  # the first that one of them has is that of all


@dataclass(frozen=True, slots=True)
class RepeatWork:
    """The shards of a repeat in numbers.

    next_at: when the first of those in the queue may be claimed. n_finished: of `n_shards`. pace: responses per second
    of the workers at its running shards, over the last shard that each finished; None where one is not known.
    n_rests: the most pauses of its endpoint that one in the queue saw.
    """

    n_shards: int = 0
    n_done: int = 0
    attempts: int = 0
    n_queued: int = 0
    n_running: int = 0
    next_at: datetime | None = None
    n_finished: int = 0
    pace: float | None = None
    n_rests: int = 0


@dataclass(frozen=True, slots=True)
class ShardLines:
    """The shards of one repeat.

    `drawn`: in the order of cases, grouped if there are many. `open`: running ones, and queued ones that failed before.
    """

    drawn: tuple[ShardOfRun, ...] = ()
    open: tuple[ShardOfRun, ...] = ()


# As text: a client that polls has it made each time, and Django takes longer to write it than PostgreSQL to answer.
_WORK = """
SELECT shard.repeat_id, count(*), coalesce(sum(shard.n_done), 0), max(shard.attempt),
    count(*) FILTER (WHERE shard.status = %(queued)s), count(*) FILTER (WHERE shard.status = %(running)s),
    min(shard.next_at) FILTER (WHERE shard.status = %(queued)s),
    count(*) FILTER (WHERE shard.status = %(finished)s),
    CASE WHEN count(*) FILTER (WHERE shard.status = %(running)s)
              = count(worker.pace) FILTER (WHERE shard.status = %(running)s)
         THEN sum(worker.pace) FILTER (WHERE shard.status = %(running)s) END,
    coalesce(max(shard.n_rests) FILTER (WHERE shard.status = %(queued)s), 0)
FROM runs_shard shard JOIN runs_repeat repeat ON repeat.id = shard.repeat_id
LEFT JOIN runs_worker worker ON worker.id = shard.owner_id
WHERE repeat.run_id = ANY(%(runs)s) GROUP BY shard.repeat_id
"""


def read_work(run_ids: Collection[int]) -> dict[int, RepeatWork]:
    """Return a summary of the shards by repeat, in one statement."""
    known: dict[str, Any] = {
        "runs": list(run_ids),
        "queued": str(Shard.Status.QUEUED),
        "running": str(Shard.Status.RUNNING),
        "finished": str(Shard.Status.FINISHED),
    }
    with connection.cursor() as cursor:
        cursor.execute(_WORK, known)
        return {repeat: RepeatWork(*numbers) for repeat, *numbers in cursor.fetchall()}


def read_lines(run: RunRecord, work: Iterable[RepeatWork], now: datetime) -> dict[int, ShardLines]:
    """Return the lines of a run by repeat. work: of its repeats."""
    every = Shard.objects.filter(repeat__run=run).select_related("owner").order_by("repeat", "first")
    if max((each.n_shards for each in work), default=0) <= SHARDS_DRAWN:
        shards = list(every)
        drawn = _by_repeat((shard.repeat_id, _line(shard, now)) for shard in shards)
    else:
        drawn = _read_together(run)
        shards = [] if run.is_terminal else list(every.filter(OPEN))
    opened = _by_repeat((shard.repeat_id, _line(shard, now)) for shard in shards if _is_open(shard))
    return {repeat: ShardLines(lines, opened.get(repeat, ())) for repeat, lines in drawn.items()}


def _is_open(shard: Shard) -> bool:
    is_tried = shard.status == Shard.Status.QUEUED and shard.n_crashes + shard.n_failed_starts > 0
    return is_tried or shard.status == Shard.Status.RUNNING


def _by_repeat(lines: Iterable[tuple[int, ShardOfRun]]) -> Mapping[int, tuple[ShardOfRun, ...]]:
    by_repeat: dict[int, list[ShardOfRun]] = defaultdict(list)
    for repeat, line in lines:
        by_repeat[repeat].append(line)
    return {repeat: tuple(of) for repeat, of in by_repeat.items()}


def _read_together(run: RunRecord) -> Mapping[int, tuple[ShardOfRun, ...]]:
    n_cases = -(-run.suite_version.n_cases // LINES_DRAWN)
    names = (
        "first",
        "last",
        "status",
        "attempt",
        "n_cases",
        "n_done",
        "n_failures",
        "n_shards",
        "n_finished",
        "n_retried",
    )
    with connection.cursor() as cursor:
        cursor.execute(_TOGETHER, {"run": run.pk, "gravest": _GRAVEST, "n_cases": n_cases})
        rows = cursor.fetchall()
    return _by_repeat(
        (repeat, ShardOfRun(**dict(zip(names, values, strict=True)), worker="", error="")) for repeat, *values in rows
    )


def _line(shard: Shard, now: datetime) -> ShardOfRun:
    waits = shard.status == Shard.Status.QUEUED and shard.next_at > now
    return ShardOfRun.from_record(
        shard,
        worker=shard.owner.name if shard.owner else "",
        is_silent=_is_silent(shard, now),
        n_failures=shard.n_crashes + shard.n_failed_starts,
        waits_until=shard.next_at if waits else None,
        n_finished=int(shard.status == Shard.Status.FINISHED),
        n_retried=int(shard.attempt > 1),
    )


def _is_silent(shard: Shard, now: datetime) -> bool:
    if shard.status != Shard.Status.RUNNING or shard.owner is None:
        return False
    return now - shard.owner.seen_at > timedelta(seconds=settings.LEASE_SECONDS)


STRAYS_SHOWN = 100  # of a bucket, with the run

FirstStrays = Mapping[tuple[int, int], tuple[StrayResponse, ...]]  # by run and bucket


@dataclass(frozen=True, slots=True)
class StrayPage:
    """A page of responses from other builds. n_strays: of all. stacks: by bucket id."""

    warnings: tuple[RunWarning, ...]
    n_strays: int
    rows: tuple[StrayResponse, ...]
    stacks: Mapping[str, FingerprintNamed]


def first_strays(runs: Iterable[RunRecord]) -> FirstStrays:
    """Read the first responses from other builds of each bucket, in two statements for all runs."""
    suites = {(run.pk, strays["bucket"]): run.suite_version_id for run in runs for strays in run.strays or ()}
    if not suites:
        return {}
    each = [Stray.objects.filter(run=run, bucket=bucket).listed()[:STRAYS_SHOWN] for run, bucket in suites]
    rows = list(each[0].union(*each[1:], all=True)) if len(each) > 1 else list(each[0])
    return {
        place: _named(suite, sorted((row for row in rows if (row.run_id, row.bucket_id) == place), key=_by_id))
        for place, suite in suites.items()
    }


def stray_rows(
    run_id: int,
    *,
    bucket: int | None = None,
    after: int | None = None,
    before: int | None = None,
    limit: int = 50,
) -> tuple[StrayResponse, ...]:
    """Read a run's responses from other builds by bucket, case and repeat: after or just before a place.

    bucket: only of this one. Raises NotFound if the run does not exist.
    """
    run = _run(run_id)
    strays = Stray.objects.filter(run=run).listed()
    if bucket is not None:
        strays = strays.filter(bucket=bucket)
    if before is not None:
        return _named(run.suite_version_id, strays.filter(pk__lt=before).reverse()[:limit])[::-1]
    return _named(run.suite_version_id, (strays if after is None else strays.filter(pk__gt=after))[:limit])


def stray_page(run_id: int, *, offset: int, limit: int) -> StrayPage:
    """Read `limit` of a run's responses from other builds from `offset` on. Raises NotFound."""
    run = _run(run_id)
    ids = [strays["bucket"] for strays in run.strays or ()]
    names = names_on(run.endpoint_id, ids)
    buckets = BucketRecord.objects.filter(pk__in=ids).select_related("fingerprint").defer("fingerprint__manifest")
    return StrayPage(
        warnings=list_warnings(WarnedRun(strays=run.strays or ())),
        n_strays=sum(strays["n_strays"] for strays in run.strays or ()),
        rows=_named(run.suite_version_id, Stray.objects.filter(run=run).listed()[offset : offset + limit]),
        stacks={str(row.pk): describe_fingerprint(row.fingerprint, names[row.pk]) for row in buckets},
    )


def _run(run_id: int) -> RunRecord:
    return require_row(RunRecord.objects.filter(pk=run_id), f"There is no run {run_id}.")


def _named(suite_version_id: int, strays: Iterable[Stray]) -> tuple[StrayResponse, ...]:
    rows = list(strays)
    cases = Case.objects.filter(suite_version=suite_version_id, index__in={row.case_index for row in rows})
    ids = dict(cases.values_list("index", "case_id"))
    return tuple(
        StrayResponse(case=ids[row.case_index], repeat=row.repeat, bucket=str(row.bucket_id), place=row.pk)
        for row in rows
    )


def _by_id(row: Stray) -> int:
    return row.pk
