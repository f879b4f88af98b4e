"""Check external servers daily where a person wants it: their first use creates a schedule.

What an endpoint honours may change any day. The schedule is like any other: it can be paused or deleted. Deleting it
ends the wish (`delete_schedule`), so that it is not created again.
"""

from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.fields.json import KT

from runs.models import EndpointRecord, ProbeRecord, RunRecord, ScheduleRecord
from runs.schedules.times import latest_time
from runs.store import database_now

MAX_SLUG_CHARS = 80


CHECKS = ScheduleRecord.objects.filter(order__kind=ProbeRecord.Kind.CAPABILITY.value)


def endpoints_without_check() -> list[int]:
    """Return ids of endpoints to check daily that people have used and that no schedule checks."""
    uses = [
        Exists(model.objects.filter(endpoint=OuterRef("pk"), created_by__isnull=False).order_by())
        for model in (RunRecord, ProbeRecord)
    ]
    checked = CHECKS.annotate(checks=KT("order__endpoint")).filter(checks=OuterRef("slug"))
    new = EndpointRecord.objects.filter(Q(uses[0]) | Q(uses[1]), ~Exists(checked), daily_check=True)
    return list(new.values_list("pk", flat=True))


def schedule_check(endpoint_id: int) -> bool:
    """Schedule a daily check, starting now, as the endpoint's first user; False if there is one."""
    with transaction.atomic():
        new = EndpointRecord.objects.select_for_update(no_key=True, skip_locked=True)
        endpoint = new.filter(pk=endpoint_id, daily_check=True).first()
        if endpoint is None:
            return False
        slug = f"check-{endpoint.slug}"[:MAX_SLUG_CHARS]
        if ScheduleRecord.objects.filter(slug=slug).exists() or CHECKS.filter(order__endpoint=endpoint.slug).exists():
            return False  # another process has done it
        now = database_now()
        cron = f"{now.minute} {now.hour} * * *"
        ScheduleRecord.objects.create(
            slug=slug,
            kind=ScheduleRecord.Kind.PROBE,
            order={"endpoint": endpoint.slug, "kind": ProbeRecord.Kind.CAPABILITY.value, "parameters": {}},
            cron=cron,
            time_zone="UTC",
            created_by=_first_user(endpoint),
            next_at=latest_time(cron, "UTC", until=now),
        )
    return True


def _first_user(endpoint: EndpointRecord) -> Any:
    """Return the person who first requested a run or probe."""
    firsts = [
        model.objects.filter(endpoint=endpoint, created_by__isnull=False).select_related("created_by").order_by("pk")
        for model in (RunRecord, ProbeRecord)
    ]
    return min((row for rows in firsts if (row := rows.first())), key=lambda row: row.created_at).created_by
