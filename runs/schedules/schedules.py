"""Schedules: create, pause and start them when due, in a sweep.

A due time is a row of its own (`ScheduledStart`), unique for its schedule, so two sweeps start it once. Due times
missed while no sweep ran are replaced by one start for the latest of them.
"""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from evalboard.core.errors import Conflict, EvalboardError, InvalidInput, Refused
from runs import acts
from runs.access import RUN, may
from runs.catalogue import SLUG
from runs.models import EndpointRecord, ProbeRecord, RunRecord, ScheduledStart, ScheduleRecord
from runs.probes import create_probe
from runs.run import create_run
from runs.schedules.times import latest_time, next_time, time_problems
from runs.store import database_now, require_row

logger = logging.getLogger(__name__)

MAX_SCHEDULES = 200
FAILURES_BEFORE_ALARM = 3
LABEL = "schedule"  # of a run that one started
OPEN = (RunRecord.Status.QUEUED, RunRecord.Status.RUNNING)


def create_schedule(
    *, slug: str, cron: str, time_zone: str = "UTC", kind: str, order: Mapping[str, Any], user: Any
) -> ScheduleRecord:
    """Start runs or probes at set times from now on, as `user`.

    order: what `create_run` or `create_probe` takes, without a user. Raises InvalidInput with fields, whatever these
    two raise for the order, and Conflict where the slug is taken or there are too many.
    """
    now = database_now()
    fields = time_problems(cron, time_zone, now=now)
    if not SLUG.fullmatch(slug):
        fields["slug"] = "Use small letters, digits, dots, dashes; at most 80."
    if fields:
        raise InvalidInput("The schedule is not valid.", fields=fields)
    schedule = ScheduleRecord(slug=slug, kind=kind, order=dict(order), cron=cron, time_zone=time_zone, created_by=user)
    _try_order(schedule)
    if ScheduleRecord.objects.count() >= MAX_SCHEDULES:
        raise Conflict(f"There are {MAX_SCHEDULES} schedules already; delete one that is not needed.")
    schedule.next_at = next_time(cron, time_zone, after=now)
    try:
        with transaction.atomic():
            schedule.save()
    except IntegrityError as taken:
        raise Conflict(f"There is a schedule named {slug} already; choose another slug.") from taken
    return schedule


@transaction.atomic
def pause_schedule(*, schedule_id: int) -> None:
    """Start nothing more of it until it is resumed. Raises NotFound."""
    schedule = _lock(schedule_id)
    if acts.require("pause", schedule):
        schedule.next_at = None
        schedule.save(update_fields=["next_at"])


@transaction.atomic
def resume_schedule(*, schedule_id: int) -> None:
    """Resume a schedule from its next due time on; missed times are skipped.

    Raises NotFound.
    """
    schedule = _lock(schedule_id)
    if acts.require("resume", schedule):
        schedule.next_at = next_time(schedule.cron, schedule.time_zone, after=database_now())
        schedule.n_failures = 0
        schedule.save(update_fields=["next_at", "n_failures"])


def delete_schedule(*, schedule_id: int) -> None:
    """Delete a schedule; the runs and probes that it started stay. Raises NotFound.

    A daily check that is deleted is no longer wanted.
    """
    schedule = _require(ScheduleRecord.objects.all(), schedule_id)
    if schedule.order.get("kind") == ProbeRecord.Kind.CAPABILITY:
        EndpointRecord.objects.filter(slug=schedule.order["endpoint"]).update(daily_check=False)
    schedule.delete()


def due_schedules() -> list[int]:
    """Return the ids of schedules whose time has come."""
    return list(
        ScheduleRecord.objects.filter(next_at__lte=Now()).order_by("next_at", "pk").values_list("pk", flat=True)
    )


def start_due(schedule_id: int) -> bool:
    """Start a due schedule once; False if another sweep does or did."""
    with transaction.atomic():
        due = ScheduleRecord.objects.filter(pk=schedule_id, next_at__lte=Now()).annotate(now=Now())
        schedule = due.select_for_update(skip_locked=True, of=("self",)).select_related("created_by").first()
        if schedule is None or schedule.next_at is None:
            return False
        now: datetime = schedule.now
        due_at = max(latest_time(schedule.cron, schedule.time_zone, until=now), schedule.next_at)
        missed_since = schedule.next_at if schedule.next_at < due_at else None
        start = ScheduledStart(schedule=schedule, due_at=due_at, missed_since=missed_since)
        try:
            with transaction.atomic():
                _start(schedule, start)
        except EvalboardError as problem:
            start.problem = " ".join([problem.detail, *(f"{path}: {words}" for path, words in problem.fields.items())])
        except Exception as fault:  # it is told on the schedule's page, and its next time comes all the same
            logger.exception("Schedule %s was not started", schedule.slug)
            start.problem = f"{type(fault).__name__}: {fault}"
        start.save()
        schedule.n_failures = schedule.n_failures + 1 if start.problem else 0
        schedule.next_at = next_time(schedule.cron, schedule.time_zone, after=now)
        schedule.save(update_fields=["n_failures", "next_at"])
    return True


def _start(schedule: ScheduleRecord, start: ScheduledStart) -> None:
    """Make the run or the probe. Raises what these raise, Refused and Conflict."""
    user = schedule.created_by
    if not may(user, RUN):
        raise Refused(f"{user.get_username()}, who made the schedule, may not start runs any more.")
    before = schedule.starts.select_related("run", "probe").exclude(Q(run=None) & Q(probe=None)).first()
    if before is not None and _is_open(before):
        what = f"run {before.run_id}" if before.run_id else f"probe {before.probe_id}"
        raise Conflict(f"What it started before, {what}, has not ended.")
    if schedule.kind == ScheduleRecord.Kind.RUN:
        labels = {LABEL: schedule.slug} | schedule.order.get("labels", {})
        start.run = create_run(**{**schedule.order, "labels": labels}, user=user)
    else:
        start.probe = create_probe(**schedule.order, user=user)


def _is_open(start: ScheduledStart) -> bool:
    if start.run is not None:
        return start.run.status in OPEN
    return start.probe is not None and start.probe.status in (ProbeRecord.Status.QUEUED, ProbeRecord.Status.RUNNING)


def _try_order(schedule: ScheduleRecord) -> None:
    """Start it once and roll back, so that problems are reported to the person who creates it."""
    with transaction.atomic():
        try:
            if schedule.kind == ScheduleRecord.Kind.RUN:
                create_run(**schedule.order, user=schedule.created_by)
            else:
                create_probe(**schedule.order, user=schedule.created_by)
        except InvalidInput as problem:
            named = {f"{schedule.kind}.{path}": words for path, words in problem.fields.items()}
            raise InvalidInput("The schedule is not valid.", fields=named) from problem
        finally:
            transaction.set_rollback(True)


def _lock(schedule_id: int) -> ScheduleRecord:
    return _require(ScheduleRecord.objects.select_for_update(), schedule_id)


def _require(schedules: QuerySet[ScheduleRecord], schedule_id: int) -> ScheduleRecord:
    return require_row(schedules.filter(pk=schedule_id), f"There is no schedule {schedule_id}.")
