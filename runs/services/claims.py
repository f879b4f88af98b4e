"""What is claimed whole, as replays and probes are: one row, held by one attempt, let go of in one statement.

A shard has more to it (its run, its cases, what it crashed on) and its own rules, in `shards` and `leases`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from evalboard.core.errors import LeaseLost
from runs import dispatch
from runs.models import Probe, Replay, Worker
from runs.services.leases import Beat, lease_span
from runs.services.storable import storable

MOST_ATTEMPTS = 3
SILENT = "Its worker was not heard of for the length of a lease."
GONE = "Its worker's process is gone."

Row = TypeVar("Row", Replay, Probe)


class Claim(Protocol):
    """The right to work on a row: it holds as long as no other attempt took it."""

    @property
    def key(self) -> int: ...

    @property
    def attempt(self) -> int: ...

    @property
    def worker_id(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Claims(Generic[Row]):
    """The rows of one model that workers claim whole. pool: the lookup that leads to the pool whose workers may."""

    model: type[Row]
    pool: str

    def held(self, lease: Claim) -> QuerySet[Row]:
        """The row as a query that finds it only while this attempt holds it."""
        return self._running().filter(pk=lease.key, attempt=lease.attempt, owner=lease.worker_id)

    def fenced(self, lease: Claim) -> Row:
        """The row, locked until the transaction ends and still held. Raises LeaseLost."""
        row = self.held(lease).select_for_update().first()
        if row is None:
            raise lost(lease)
        return row

    def renew(self, lease: Claim) -> Beat:
        """Extend a lease that is still held. What is claimed whole is not cancelled; deleted, it is not held."""
        is_held = self.held(lease).update(lease_until=Now() + lease_span()) == 1
        return Beat(is_held=is_held, is_cancel_wanted=False)

    def let_go(self, mine: QuerySet[Row], reason: str, *, may_fail: bool) -> int:
        """End or queue rows in one statement each, so that whoever saved one meanwhile keeps it; how many there were.

        may_fail: the attempt ended badly; after MOST_ATTEMPTS the row has failed. The pools of the others are told.
        """
        n_failed = 0
        if may_fail:
            words = f"It was begun {MOST_ATTEMPTS} times and never came to an end. {reason}"
            n_failed = self.fail(mine.filter(attempt__gte=MOST_ATTEMPTS), words)
        pools = set(mine.values_list(self.pool, flat=True))
        n_queued = mine.update(
            status=self.model.Status.QUEUED, owner=None, lease_until=None, next_at=Now(), error=storable(reason)
        )
        for pool in pools:
            ring_after_commit(pool)
        return n_failed + n_queued

    def fail(self, mine: QuerySet[Row], reason: str) -> int:
        return mine.update(status=self.model.Status.FAILED, error=storable(reason), lease_until=None, finished_at=Now())

    def expired(self) -> QuerySet[Row]:
        """Those whose lease has ended by the database's clock."""
        return self._running().filter(lease_until__lt=Now())

    def owned_by(self, worker_ids: Collection[int]) -> QuerySet[Row]:
        return self._running().filter(owner__in=worker_ids)

    def _running(self) -> QuerySet[Row]:
        return self.model._default_manager.filter(status=self.model.Status.RUNNING)


def claim(statement: str, *, worker: Worker, **conditions: Any) -> tuple[Any, ...] | None:
    """Run a statement that claims one row for the worker; what it returns, or None where there was nothing."""
    known: Mapping[str, Any] = {"worker": worker.pk, "pool": worker.pool, "lease_seconds": lease_span().total_seconds()}
    with connection.cursor() as cursor:
        cursor.execute(statement, {**known, **conditions})
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


def lost(lease: Claim) -> LeaseLost:
    return LeaseLost(f"Attempt {lease.attempt} at {lease} no longer holds it; what it still wrote was refused.")


def ring_after_commit(pool: str, *, n_workers: int = 1) -> None:
    """Tell the pool once the row can be found; a ring that is lost costs the time until a worker looks by itself."""
    transaction.on_commit(partial(dispatch.ring_or_log, pool, n_shards=n_workers), robust=True)
