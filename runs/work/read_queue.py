"""Read how much work is queued before a run, and how long it takes at the pool's rate."""

from django.db import connection
from django.db.models import Min
from django.db.models.functions import Now

from evalboard.contract.run import Ahead
from evalboard.wording import run as wording
from runs.models import EndpointRecord, Priority, RunRecord, WorkerRecord
from runs.work.claims import lease_span
from runs.work.workers import able

# Lanes of the run's priority take turns with its own: each has a turn for every shard that waits there before the
# run's first, and one more where it is its turn before. All that has a higher priority goes first, nothing of a lower.
_AHEAD = """
WITH mine AS (
    SELECT shard.id, lane.id AS lane_id, lane.turn, lane.pool, array_position(%(order)s, lane.priority::text) AS place
      FROM runs_shard shard JOIN runs_repeat repeat ON repeat.id = shard.repeat_id
      JOIN runs_lane lane ON lane.id = shard.lane_id
     WHERE repeat.run_id = %(run)s AND shard.status = 'queued'
     ORDER BY shard.id LIMIT 1
), own AS (
    SELECT count(*) AS n FROM runs_shard shard JOIN mine ON shard.lane_id = mine.lane_id AND shard.id < mine.id
     WHERE shard.status = 'queued'
)
SELECT count(*), count(DISTINCT waiting.run_id), coalesce(sum(waiting.n), 0)
  FROM mine CROSS JOIN own JOIN runs_lane lane ON lane.pool = mine.pool
 CROSS JOIN LATERAL (
       SELECT repeat.run_id, coalesce(shard.n_chosen, shard.last - shard.first + 1) - shard.n_done AS n
         FROM runs_shard shard JOIN runs_repeat repeat ON repeat.id = shard.repeat_id
        WHERE shard.lane_id = lane.id AND shard.status = 'queued' AND shard.next_at <= statement_timestamp()
        ORDER BY shard.id
        LIMIT CASE
              WHEN lane.id = mine.lane_id THEN own.n
              WHEN array_position(%(order)s, lane.priority::text) < mine.place THEN NULL
              WHEN array_position(%(order)s, lane.priority::text) > mine.place THEN 0
              ELSE own.n + ((lane.turn, lane.id) < (mine.turn, mine.lane_id))::int
              END) waiting
"""


def shards_ahead(run: RunRecord) -> Ahead:
    """Count what is claimed before the run's next shard, at present.

    seconds: at the recent rate of workers that can take work; None if one of them has finished no shard, or there is
    none.
    """
    with connection.cursor() as cursor:
        cursor.execute(_AHEAD, {"run": run.pk, "order": list(Priority.values)})
        n_shards, n_runs, n_responses = cursor.fetchone()
    paces = [
        pace or 0.0
        for pace in able(run.endpoint.pool, needs_engine=not run.endpoint.is_remote).values_list("pace", flat=True)
    ]
    seconds = n_responses / sum(paces) if paces and all(paces) else None
    return Ahead(n_shards=n_shards, n_runs=n_runs, n_responses=n_responses, seconds=seconds)


def unclaimed_reason(endpoint: str) -> str:
    """Say why no worker can take what waits for an endpoint of this name; "" where one can."""
    target = EndpointRecord.objects.filter(slug=endpoint).only("pool", "engine").first()
    if target is None or able(target.pool, needs_engine=not target.is_remote).exists():
        return ""
    living = WorkerRecord.objects.filter(pool=target.pool, stopped_at=None, seen_at__gt=Now() - lease_span())
    resting = living.filter(rests_until__gt=Now())
    if (until := resting.aggregate(first=Min("rests_until"))["first"]) is not None:
        facts = {"pool": target.pool, "n_resting": resting.count(), "until": until, "reasons": ()}
        return wording.waiting("resting", facts)
    return wording.waiting("no_engine" if living.exists() else "nobody", {"pool": target.pool})
