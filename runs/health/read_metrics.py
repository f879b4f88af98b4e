"""Metrics for a monitoring system, from the database except for the disk.

Every query reads what is open, living or newest, never all responses, shards or events there ever were.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db.models import Count, F, Max, Min, Q, Sum
from django.db.models.functions import Coalesce, Now

from runs.health.read import doorbell_problem, free_bytes
from runs.models import EndpointRecord, EngineProcess, Event, RunRecord, Shard, WorkerRecord
from runs.work import worker_rows

EVENTS_LOOKED_AT = 10_000
PROCESSES_LOOKED_AT = 1000
LATELY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """`oldest_seconds`: how long the shard that waits longest could have been claimed; 0 where none waits."""

    n_queued: int = 0
    n_running: int = 0
    n_expired: int = 0
    n_cases_left: int = 0
    oldest_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Metrics:
    """`is_doorbell_heard` is None where no broker is configured."""

    runs: Mapping[str, int]
    pools: Mapping[str, PoolFigures]
    workers: Mapping[tuple[str, str], int]  # (pool, state) → how many
    n_engine_processes: int
    n_fenced: int
    n_self_check_failures: int
    events: Mapping[tuple[str, str], int]  # (level, code) → how many in the last hour
    is_doorbell_heard: bool | None
    free_bytes: int


def metrics() -> Metrics:
    counted = dict(RunRecord.objects.order_by().values_list("status").annotate(n=Count("pk")))
    return Metrics(
        runs={status: counted.get(status, 0) for status in RunRecord.Status.values},
        pools=_pools(),
        workers=Counter((row.pool, row.state) for row in worker_rows() if row.state != "stopped"),
        n_engine_processes=_living_processes(),
        n_fenced=WorkerRecord.objects.aggregate(n=Sum("n_fenced"))["n"] or 0,
        n_self_check_failures=_self_check_failures(),
        events=_events(),
        is_doorbell_heard=doorbell_problem() is None if settings.REDIS_URL else None,
        free_bytes=free_bytes(),
    )


def _pools() -> dict[str, PoolFigures]:
    """Every pool that an endpoint names, so that an empty one is a zero and not a gap."""
    served = EndpointRecord.objects.exclude(engine=EndpointRecord.Engine.IMPORTED)
    pools = dict.fromkeys(served.order_by().values_list("pool", flat=True).distinct(), PoolFigures())
    counted = (
        Shard.objects.open()
        .order_by()
        .values(pool=F("repeat__run__endpoint__pool"))
        .annotate(
            n_queued=Count("pk", filter=Q(status=Shard.Status.QUEUED)),
            n_running=Count("pk", filter=Q(status=Shard.Status.RUNNING)),
            n_expired=Count("pk", filter=Q(status=Shard.Status.RUNNING, lease_until__lt=Now())),
            n_cases_left=Sum(Coalesce("n_chosen", F("last") - F("first") + 1) - F("n_done")),
        )
    )
    waits = Shard.objects.claimable().order_by().values(pool=F("repeat__run__endpoint__pool"))
    oldest = {row["pool"]: row["age"] for row in waits.annotate(age=Now() - Min("next_at"))}
    for row in counted:
        pools[row["pool"]] = PoolFigures(
            n_queued=row["n_queued"],
            n_running=row["n_running"],
            n_expired=row["n_expired"],
            n_cases_left=row["n_cases_left"],
            oldest_seconds=oldest.get(row["pool"], timedelta(0)).total_seconds(),
        )
    return pools


def _living_processes() -> int:
    lately = Now() - timedelta(seconds=settings.LEASE_SECONDS)
    return EngineProcess.objects.filter(stopped_at=None, worker__stopped_at=None, worker__seen_at__gt=lately).count()


def _self_check_failures() -> int:
    """Engine processes, among the newest, that stopped giving the same bits."""
    newest = EngineProcess.objects.aggregate(pk=Max("pk"))["pk"] or 0
    looked_at = EngineProcess.objects.filter(pk__gt=newest - PROCESSES_LOOKED_AT)
    return looked_at.filter(self_checks__contains=[{"same": False}]).count()


def _events() -> dict[tuple[str, str], int]:
    newest = Event.objects.aggregate(pk=Max("pk"))["pk"] or 0
    lately = Event.objects.filter(pk__gt=newest - EVENTS_LOOKED_AT, at__gt=Now() - LATELY)
    counted = lately.order_by().values_list("level", "code").annotate(n=Count("pk"))
    return {(level, code): n for level, code, n in counted}
