"""The queue of a pool: whose shard is next, and how much one person may have waiting.

A shard waits in a lane, that of its run's person and priority. A claim chooses a lane and takes the oldest shard there
that nobody holds. Lanes are few, and only the first shard of each is looked at, so a claim costs the same however long
the queue is. What decides between lanes, in this order:

1. A priority that was passed over `PASSED_OVER` times, and whose shard has waited for a minute, has one turn, so that
   none starves.
2. The higher priority.
3. A lane whose next shard the worker's engine serves as it is: a start costs minutes. The worker asks for that a few
   times in a row at the most (`worker.shard`), so that it comes to the others as well.
4. The lane whose last turn is longest ago.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import F, Sum
from django.db.models.functions import Coalesce

from evalboard.core.errors import Conflict
from evalboard.wording import run as wording
from runs.models import Lane, Priority, RunRecord, Shard

PASSED_OVER = 8
PATIENCE_SECONDS = 60
RUNS_NAMED = 3

# The oldest shard of a lane that a worker may take. What its run says is a value and no join, and the id is no column
# but a sum: so only the index `shard_in_lane` gives this order without a sort (`go_along_index`).
_OLDEST = """
  FROM runs_shard shard
 WHERE shard.lane_id = lane.id AND shard.status = 'queued' AND shard.next_at <= statement_timestamp()
   AND (SELECT NOT run.is_cancel_wanted AND run.status IN ('queued', 'running') AND run.id <> ALL(%s)
               AND (%s OR (SELECT engine = 'openai' FROM runs_endpoint WHERE id = run.endpoint_id))
          FROM runs_repeat repeat JOIN runs_run run ON run.id = repeat.run_id WHERE repeat.id = shard.repeat_id)
 ORDER BY shard.id + 0
 LIMIT 1
"""
_ENGINE = "run.endpoint_id, run.profile_id, coalesce(run.model_override, 'null')"

# Lanes are put in order by a look at their oldest shards, one look each: materialized, or PostgreSQL may look again for
# every repeat where it believes that there are few. Then they are gone through in that order until one has a shard that
# nobody else holds. An order of the whole would lock a shard of every lane before it chose.
_NEXT_SHARD = f"""
WITH oldest AS MATERIALIZED (
SELECT lane.*, first.*
  FROM (SELECT id, priority, turn, max(turn) OVER () - max(turn) OVER (PARTITION BY priority) AS n_passed_over
          FROM runs_lane WHERE pool = %s) lane
 CROSS JOIN LATERAL (SELECT shard.repeat_id, shard.next_at {_OLDEST}) first
)
SELECT taken.id
  FROM (SELECT oldest.id
          FROM oldest
          JOIN runs_repeat repeat ON repeat.id = oldest.repeat_id
          JOIN runs_run run ON run.id = repeat.run_id
         ORDER BY n_passed_over >= %s
                  AND oldest.next_at < statement_timestamp() - make_interval(secs => %s) DESC,
                  array_position(%s, oldest.priority::text),
                  ({_ENGINE}) IN (SELECT {_ENGINE} FROM runs_run run WHERE run.id = %s) DESC,
                  oldest.turn, oldest.id) lane
 CROSS JOIN LATERAL (SELECT shard.id {_OLDEST} FOR UPDATE OF shard SKIP LOCKED) taken
 LIMIT 1
"""  # noqa: S608  put together from the two texts above, which hold no values

_TAKE_TURN = """
UPDATE runs_lane lane SET turn = (SELECT max(turn) + 1 FROM runs_lane WHERE pool = lane.pool) WHERE id = %s
"""

# Where PostgreSQL believes that few shards wait, as after a large run has ended or while all of one rested, it would
# rather read them all and sort: 100,000 rows a claim, until it learns better. jit: what must be sorted now counts as so
# dear that compiling would seem to pay.
_SORT_NOTHING = "SET LOCAL enable_sort = off; SET LOCAL jit = off"


class QueueFull(Conflict):
    """A person has as much in the queue as one may have."""

    code = "queue_full"
    title = "Too much waits in the queue already"


def next_shard(
    *, pool: str, left_alone: frozenset[int], warm_for: int | None, has_engine: bool = True
) -> tuple[str, list[Any]]:
    """Return the query and parameters that choose and lock a pool's next shard, for `Claims.claim_chosen`.

    left_alone: runs to leave out. warm_for: the run that a warm engine was started for; None where it is to count for
    nothing. has_engine: without one, only shards of external endpoints are chosen.
    """
    left = [list(left_alone), has_engine]
    in_order = [PASSED_OVER, PATIENCE_SECONDS, list(Priority.values), warm_for]
    return _NEXT_SHARD, [pool, *left, *in_order, *left]


def go_along_index() -> None:
    """Make the transaction find a lane's oldest shard by index, whatever the planner's statistics."""
    with connection.cursor() as cursor:
        cursor.execute(_SORT_NOTHING)


def take_turn(*, shard: Shard) -> None:
    """Put the lane of a shard that was just claimed behind all others of its pool."""
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_TURN, [shard.lane_id])


def lane_of(run: RunRecord) -> Lane:
    """Return the lane where a run's shards wait, made where it is the first of its kind."""
    kind: dict[str, Any] = {"pool": run.endpoint.pool, "priority": run.priority, "person": run.created_by}
    # Of nobody there may be several: whose person is removed becomes nobody's.
    return Lane.objects.filter(**kind).order_by("pk").first() or Lane.objects.get_or_create(**kind)[0]


def refuse_beyond_limit(person: Any, n_responses: int) -> None:
    """Raise QueueFull where so many more responses would be more than one person may have waiting.

    person: None for what no person asks for, which has no limit. Requests of one person come one after another from
    here to the end of the transaction, so that two at once do not both fit.
    """
    if person is None:
        return
    get_user_model().objects.select_for_update(no_key=True).get(pk=person.pk)
    waiting = Shard.objects.filter(lane__person=person, status=Shard.Status.QUEUED)
    n_cases = Coalesce("n_chosen", F("last") - F("first") + 1)
    by_run = waiting.values_list("repeat__run").annotate(n=Sum(n_cases - F("n_done"))).order_by("-n")
    counts = dict(by_run)
    n_waiting, limit = sum(counts.values()), settings.MAX_QUEUED_RESPONSES
    if n_waiting + n_responses > limit:
        raise QueueFull(
            wording.queue_full(
                person.get_username(),
                n_waiting=n_waiting,
                n_more=n_responses,
                limit=limit,
                run_ids=list(counts)[:RUNS_NAMED],
            )
        )
