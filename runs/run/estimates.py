"""How long engines were at work on a run, and from that what another will take."""

from dataclasses import dataclass, replace
from typing import Any

from django.db import connection
from django.db.models import Avg, OuterRef, Subquery

from evalboard.contract.run import RunEstimate
from evalboard.core.cost import Pace, estimate_cost
from evalboard.wording.run import describe_estimate
from runs.models import EndpointRecord, EngineProcess, RepeatRecord, RunRecord, SuiteVersionRecord
from runs.run.runs import find_order

STARTS_READ = 10
RUNS_LOOKED_AT = 20
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


def read_pace(version: SuiteVersionRecord, endpoint: EndpointRecord, *, batch_class: str) -> Pace:
    """Return how long a pass took in the newest run of this version, endpoint and batch class.

    Without such a run, one at batch size 1 is used: nothing is slower.
    """
    ended = RunRecord.objects.filter(
        suite_version=version, endpoint=endpoint, status=RunRecord.Status.FINISHED, source=None
    ).select_related("profile")
    starts = EngineProcess.objects.filter(repeats__run__endpoint=endpoint).order_by("-id")[:STARTS_READ]
    start = EngineProcess.objects.filter(pk__in=[each.pk for each in starts]).aggregate(at=Avg("start_seconds"))["at"]
    for wanted in dict.fromkeys((batch_class, "alone")):
        in_class = ended.filter(profile__settings__batch_class=wanted).order_by("-id")[:RUNS_LOOKED_AT]
        for run in in_class:
            time = measure_engine_time(run)
            n_passes = run.repeats.filter(cases=None, status=RunRecord.Status.FINISHED).count()
            if n_passes and time.seconds:
                return Pace(time.seconds / n_passes, time.n_tokens / n_passes, start)
    return Pace(start_seconds=start)


def estimate_run(*, suite: str, endpoint: str, profile: str = "pinned", repeats: int = 5) -> RunEstimate:
    """Estimate what a run would take, from the newest like it, else from another suite's on the endpoint.

    Raises as `find_order` does, which refuses a run that cannot be started.
    """
    order = find_order(suite=suite, endpoint=endpoint, profile=profile, repeats=repeats)
    version, target, batch_class = order.version, order.endpoint, order.profile.settings["batch_class"]
    pace, paced_by = read_pace(version, target, batch_class=batch_class), None
    if pace.pass_seconds is None:
        others = SuiteVersionRecord.objects.filter(
            suite__judged_suite=None, runs__endpoint=target, runs__status=RunRecord.Status.FINISHED
        )
        other = others.select_related("suite").order_by("-runs__id").first()
        if other is not None:
            other_pace = read_pace(other, target, batch_class=batch_class)
            seconds, paced_by = other_pace.pass_seconds, other.suite.slug
            scaled = None if seconds is None else seconds * version.n_cases / other.n_cases
            pace = replace(other_pace, pass_seconds=scaled, pass_tokens=None)  # its answers are of another length
    cost = estimate_cost(repeats, pace=pace, is_restarted=False, has_engine=not target.is_remote)
    known: dict[str, Any] = {
        "n_calls": order.n_responses,
        "tokens": None if cost.tokens is None else round(cost.tokens),
        "minutes": cost.minutes,
        "paced_by": None if cost.minutes is None else paced_by,
    }
    return RunEstimate(**known, sentence=describe_estimate(**known, is_remote=target.is_remote))
