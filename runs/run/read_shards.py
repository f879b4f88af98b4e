"""The shards of a run: what they come to in each repeat, and the lines that its page draws of them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Case, Count, Max, Min, Q, Sum, When
from django.db.models.functions import Coalesce

from evalboard.contract.run import ShardOfRun
from runs.models import RunRecord, Shard

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
    """

    n_shards: int = 0
    n_done: int = 0
    attempts: int = 0
    n_queued: int = 0
    n_running: int = 0
    next_at: datetime | None = None
    n_finished: int = 0
    pace: float | None = None


@dataclass(frozen=True, slots=True)
class ShardLines:
    """The shards of one repeat.

    `drawn`: in the order of cases, grouped if there are many. `open`: running ones, and queued ones that failed before.
    """

    drawn: tuple[ShardOfRun, ...] = ()
    open: tuple[ShardOfRun, ...] = ()


def read_work(run_ids: Collection[int]) -> dict[int, RepeatWork]:
    """Return a summary of the shards by repeat, in one statement."""
    queued, running = Q(status=Shard.Status.QUEUED), Q(status=Shard.Status.RUNNING)
    rows = Shard.objects.filter(repeat__run__in=run_ids).order_by().values("repeat")
    counted = rows.annotate(
        n=Count("id"),
        done=Coalesce(Sum("n_done"), 0),
        attempts=Max("attempt"),
        n_queued=Count("id", filter=queued),
        n_running=Count("id", filter=running),
        first=Min("next_at", filter=queued),
        n_finished=Count("id", filter=Q(status=Shard.Status.FINISHED)),
        pace=Case(When(n_running=Count("owner__pace", filter=running), then=Sum("owner__pace", filter=running))),
    )
    names = ("repeat", "n", "done", "attempts", "n_queued", "n_running", "first", "n_finished", "pace")
    return {repeat: RepeatWork(*numbers) for repeat, *numbers in counted.values_list(*names)}


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
