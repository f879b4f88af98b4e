"""Check external servers daily: a schedule is created when a server is first used.

What an endpoint honours may change any day. The schedule is like any other: it can be paused or deleted, and is not
created again.
"""

from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from runs.models import EndpointRecord, ProbeRecord, RunRecord, ScheduleRecord
from runs.schedules.times import latest_time
from runs.store import database_now

MAX_SLUG_CHARS = 80


def endpoints_without_check() -> list[int]:
    """Return ids of external endpoints that people have used and that never had a daily check."""
    uses = [
        Exists(model.objects.filter(endpoint=OuterRef("pk"), created_by__isnull=False).order_by())
        for model in (RunRecord, ProbeRecord)
    ]
    new = EndpointRecord.objects.filter(
        Q(uses[0]) | Q(uses[1]), engine=EndpointRecord.Engine.OPENAI, has_daily_check=False
    )
    return list(new.values_list("pk", flat=True))


def schedule_check(endpoint_id: int) -> bool:
    """Schedule a daily check, starting now, as the endpoint's first user; False if there is one."""
    with transaction.atomic():
        new = EndpointRecord.objects.select_for_update(no_key=True, skip_locked=True)
        endpoint = new.filter(pk=endpoint_id, has_daily_check=False).first()
        if endpoint is None:
            return False
        EndpointRecord.objects.filter(pk=endpoint_id).update(has_daily_check=True)
        order = {"endpoint": endpoint.slug, "kind": ProbeRecord.Kind.CAPABILITY.value, "parameters": {}}
        same = ScheduleRecord.objects.filter(order__endpoint=endpoint.slug, order__kind=order["kind"])
        slug = f"check-{endpoint.slug}"[:MAX_SLUG_CHARS]
        if same.exists() or ScheduleRecord.objects.filter(slug=slug).exists():
            return False  # another process has done it
        now = database_now()
        cron = f"{now.minute} {now.hour} * * *"
        ScheduleRecord.objects.create(
            slug=slug,
            kind=ScheduleRecord.Kind.PROBE,
            order=order,
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
