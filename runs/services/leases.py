"""Leases: the right to work on a shard, and the fence against an attempt that has lost it.

All times are the database's; a worker's clock is never compared with another.
"""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db.models.functions import Now

from evalboard.core.errors import LeaseLost
from runs.models import Run, Shard
from runs.models.run import ShardQuerySet


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a shard: it holds as long as no other attempt took it."""

    shard_id: int
    attempt: int
    worker_id: int
    run_id: int
    repeat_id: int

    def __str__(self) -> str:
        return f"shard {self.shard_id}"


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat learns. `is_held` is False once another attempt has the shard."""

    is_held: bool
    is_cancel_wanted: bool


def renew_lease(*, lease: Lease) -> Beat:
    """Extend a lease that is still held; any other outcome means: stop the work."""
    is_held = held(lease).update(lease_until=Now() + lease_span()) == 1
    wanted = Run.objects.filter(pk=lease.run_id, is_cancel_wanted=True).exists()
    return Beat(is_held=is_held, is_cancel_wanted=wanted)


def mark_in_flight(*, lease: Lease, case_index: int) -> None:
    """Say which case is being decoded alone, so that a crash can be laid at its door. Raises LeaseLost."""
    if held(lease).update(in_flight=case_index, lease_until=Now() + lease_span()) != 1:
        raise lost(lease)


def fenced(lease: Lease) -> Shard:
    """The shard, locked until the transaction ends and still held. Raises LeaseLost."""
    shard = held(lease).select_for_update().first()
    if shard is None:
        raise lost(lease)
    return shard


def lost(lease: Lease) -> LeaseLost:
    return LeaseLost(
        f"Attempt {lease.attempt} at shard {lease.shard_id} no longer holds it; what it still wrote was refused."
    )


def held(lease: Lease) -> ShardQuerySet:
    """The shard as a query that finds it only while this attempt holds it."""
    return Shard.objects.filter(
        pk=lease.shard_id, attempt=lease.attempt, owner=lease.worker_id, status=Shard.Status.RUNNING
    )


def lease_span() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)
