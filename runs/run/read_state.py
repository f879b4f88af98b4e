"""The state of a run's report as two short texts, read by one statement: equal texts, equal reports.

A client that polls is told that nothing has changed without the report being made (runs/api/etags.py), and while a run
is in progress only what changes all the time is read again (runs/run/read_facts.py).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from evalboard.core.errors import NotFound
from runs.models import RunRecord

# Of a run at work some things follow from the clock alone: speed, time left, who is still there. They may be this old.
FRESH_SECONDS = 10

# First what changes with what is stored, then what moves with every response.
_STATE = """
SELECT concat_ws(
    '|', run.id, run.created_at, run.status, run.is_cancel_wanted, run.bucket_id, run.started_at, run.finished_at,
    run.failure, run.created_by_id, run.labels, run.strays, run.traces_deleted_at, run.texts_deleted_at,
    (SELECT max(deletion.id) FROM runs_deletion deletion
     WHERE deletion.run IS NULL AND deletion.suite_version_id = run.suite_version_id),
    (SELECT string_agg(concat_ws(',', repeat.index, repeat.status), ';' ORDER BY repeat.index)
     FROM runs_repeat repeat WHERE repeat.run_id = run.id),
    (SELECT string_agg(concat_ws(',', score.id, score.scorer_id, score.points, score.n_missing), ';' ORDER BY score.id)
     FROM runs_repeatscore score JOIN runs_repeat repeat ON repeat.id = score.repeat_id WHERE repeat.run_id = run.id),
    (SELECT string_agg(concat_ws(',', link.repeat_id, process.id, jsonb_array_length(process.self_checks)), ';'
                       ORDER BY link.id)
     FROM runs_repeat_engine_processes link JOIN runs_repeat repeat ON repeat.id = link.repeat_id
     JOIN runs_engineprocess process ON process.id = link.engineprocess_id WHERE repeat.run_id = run.id),
    (SELECT concat_ws(',', count(*), max(block.id)) FROM runs_traceblock block WHERE block.run_id = run.id),
    (SELECT concat_ws(',', count(*) FILTER (WHERE response.error_code <> ''),
                      count(*) FILTER (WHERE NOT response.is_vouched))
     FROM runs_response response JOIN runs_repeat repeat ON repeat.id = response.repeat_id
     WHERE repeat.run_id = run.id AND (response.error_code <> '' OR NOT response.is_vouched)),
    (SELECT suite.policy_id FROM runs_suite suite JOIN runs_suiteversion version ON version.suite_id = suite.id
     WHERE version.id = run.suite_version_id),
    (SELECT max(event.id) FROM runs_event event WHERE event.run_id = run.id),
    (SELECT endpoint.price FROM runs_endpoint endpoint WHERE endpoint.id = run.endpoint_id AND run.price = '{}'::jsonb),
    (SELECT concat_ws(',', endpoint.n_failures, endpoint.rests_until) FROM runs_endpoint endpoint
     WHERE endpoint.id = run.endpoint_id AND run.status <> ALL(%(ended)s)),
    (SELECT concat_ws(',', count(*), max(twin.id)) FROM runs_run twin
     WHERE twin.id < run.id AND twin.status = 'finished' AND twin.suite_version_id = run.suite_version_id
       AND twin.endpoint_id = run.endpoint_id AND twin.profile_id = run.profile_id AND twin.bucket_id = run.bucket_id),
    (SELECT concat_ws(',', count(*), max(other.id)) FROM runs_run other
     WHERE other.seed = run.seed AND other.status = 'finished' AND other.suite_version_id = run.suite_version_id)
),
concat_ws(
    '|', CASE WHEN run.status = ANY(%(ended)s) THEN 0 ELSE floor(extract(epoch FROM now()) / %(fresh)s) END,
    (SELECT md5(string_agg(
        concat_ws(',', repeat.index, shard.status, shard.attempt, shard.n_done, shard.owner_id,
                  shard.n_crashes, shard.n_failed_starts, shard.next_at), ';' ORDER BY repeat.index, shard.first))
     FROM runs_repeat repeat JOIN runs_shard shard ON shard.repeat_id = repeat.id
     WHERE repeat.run_id = run.id AND run.status <> ALL(%(ended)s))
),
now()
FROM runs_run run WHERE run.id = %(run)s
"""


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run. `moving` identifies the shards and the clock, `settled` everything else.

    at: when this was so, by the database's clock.
    """

    run_id: int
    settled: str
    moving: str
    at: datetime

    @property
    def tag(self) -> str:
        return f"{self.settled}|{self.moving}"


def run_state(run_id: int) -> RunState:
    """Read the state of a run. Raises NotFound."""
    known: dict[str, Any] = {
        "run": run_id,
        "ended": [str(status) for status in RunRecord.TERMINAL],
        "fresh": FRESH_SECONDS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_STATE, known)
        row = cursor.fetchone()
    if row is None:
        raise NotFound(f"There is no run {run_id}.")
    return RunState(run_id, *row)
