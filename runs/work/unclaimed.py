"""Explain why a waiting probe, replay or forced scoring is not claimed. For runs see runs.run."""

from django.db.models import Min
from django.db.models.functions import Now

from evalboard.wording import run as wording
from runs.models import EndpointRecord, WorkerRecord
from runs.work.claims import lease_span
from runs.work.workers import able


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
