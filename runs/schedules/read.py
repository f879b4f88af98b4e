"""Schedules with what came of their last due times."""

from collections import defaultdict
from typing import Any

from django.db.models import F, Window
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, RowNumber
from django.urls import reverse

from evalboard.contract import schedule as contract
from runs.models import ScheduledStart, ScheduleRecord
from runs.schedules.schedules import FAILURES_BEFORE_ALARM
from runs.store import require_first

LAST_SHOWN = 5


SCHEDULE_ORDERS = {name: name for name in ("next_at", "slug", "created_at")}


def schedule_rows(ids: list[int] | None = None, *, endpoint: str = "") -> tuple[contract.Schedule, ...]:
    """Return all schedules, those named, or those on an endpoint, next due first, paused last."""
    schedules = ScheduleRecord.objects.select_related("created_by").order_by(F("next_at").asc(nulls_last=True), "slug")
    if ids is not None:
        schedules = schedules.filter(pk__in=ids)
    if endpoint:
        schedules = schedules.filter(order__endpoint=endpoint)
    if not schedules:
        return ()
    last = _last_starts([schedule.pk for schedule in schedules])
    return tuple(_row(schedule, tuple(last[schedule.pk])) for schedule in schedules)


def schedule_row(schedule_id: int) -> contract.Schedule:
    """Return a schedule. Raises NotFound."""
    return require_first(schedule_rows([schedule_id]), f"There is no schedule {schedule_id}.")


def _last_starts(schedule_ids: list[int]) -> dict[int, list[contract.ScheduleStart]]:
    newest = Window(RowNumber(), partition_by="schedule_id", order_by=F("due_at").desc())
    starts = ScheduledStart.objects.filter(schedule__in=schedule_ids).annotate(
        place=newest,
        status=Coalesce("run__status", "probe__status"),
        state=KeyTextTransform("state", "probe__finding"),
    )
    rows: dict[int, list[contract.ScheduleStart]] = defaultdict(list)
    for start in starts.filter(place__lte=LAST_SHOWN).order_by("-due_at"):
        rows[start.schedule_id].append(_start(start))
    return rows


def _start(start: Any) -> contract.ScheduleStart:
    return contract.ScheduleStart.from_record(
        start,
        run=None if start.run_id is None else str(start.run_id),
        probe=None if start.probe_id is None else str(start.probe_id),
    )


def _row(schedule: ScheduleRecord, starts: tuple[contract.ScheduleStart, ...]) -> contract.Schedule:
    is_run = schedule.kind == ScheduleRecord.Kind.RUN
    return contract.Schedule.from_record(
        schedule,
        id=str(schedule.pk),
        run=contract.ScheduledRun.from_stored(schedule.order) if is_run else None,
        probe=None if is_run else contract.ScheduledProbe.from_stored(schedule.order),
        created_by=schedule.created_by.get_username(),
        is_failing=schedule.n_failures >= FAILURES_BEFORE_ALARM,
        starts=starts,
        url=reverse("schedules") + f"#schedule-{schedule.pk}",
    )
