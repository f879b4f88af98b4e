"""How long engines were at work on a run, from what its responses and their engine processes say."""

from dataclasses import dataclass

from django.db import connection
from django.db.models import OuterRef, Subquery

from runs.models import EngineProcess, RepeatRecord, RunRecord

# From the first request of a process in a repeat to its last answer; several workers count side by side.
TIME = """
SELECT coalesce(sum(seconds), 0)::float8, coalesce(sum(n_tokens), 0)::bigint
  FROM (SELECT extract(epoch FROM max(recorded_at) - min(recorded_at - make_interval(
                   secs => coalesce(queued_seconds, 0) + coalesce(prefill_seconds, 0) + coalesce(decode_seconds, 0)
               ))) AS seconds,
               sum(n_tokens) AS n_tokens
          FROM runs_response
         WHERE repeat_id IN (SELECT id FROM runs_repeat WHERE run_id = %s) AND error_code = ''
         GROUP BY repeat_id, engine_process_id) AS part
"""


@dataclass(frozen=True, slots=True)
class EngineTime:
    """seconds: of decoding, without starts; start_seconds: of all `n_starts` that were for this run."""

    seconds: float
    n_tokens: int
    n_starts: int
    start_seconds: float

    @property
    def minutes(self) -> float:
        return (self.seconds + self.start_seconds) / 60


def measure_engine_time(run: RunRecord) -> EngineTime:
    """Measure the engine time of a run so far. Calls to an external server start no engine."""
    with connection.cursor() as cursor:
        cursor.execute(TIME, [run.pk])
        seconds, n_tokens = cursor.fetchone()
    starts = [] if run.is_reported else _list_starts(run)
    return EngineTime(seconds, n_tokens, len(starts), sum(starts))


def _list_starts(run: RunRecord) -> list[float]:
    """Return the start times in seconds of engines that were started for this run, not reused."""
    served = RepeatRecord.engine_processes.through.objects.order_by("pk")
    first = served.filter(engineprocess=OuterRef("pk")).values("repeat__run")[:1]
    processes = EngineProcess.objects.filter(pk__in=served.filter(repeat__run=run).values("engineprocess"))
    own = processes.annotate(started_for=Subquery(first)).filter(started_for=run.pk)
    return list(own.values_list("start_seconds", flat=True))
