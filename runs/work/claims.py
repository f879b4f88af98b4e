"""Claims: which attempt may work on a row, until when, and the fence against lost attempts.

The same for every kind of work; slices add the specifics. All times are the database's; a worker's clock is never
compared with another.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from evalboard.core.errors import LeaseLost
from runs.models import EndpointRecord, WorkerRecord
from runs.models.claimed import Claimed

Row = TypeVar("Row", bound=Claimed)

CLAIM = """
UPDATE {table}
   SET status = 'running', owner_id = %s, attempt = attempt + 1,
       lease_until = clock_timestamp() + make_interval(secs => %s)
 WHERE id = ({chosen})
RETURNING id, attempt
"""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on one row of a kind, valid until another attempt takes the row."""

    kind: str
    id: int
    attempt: int
    worker_id: int

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer to a heartbeat. is_held: False once another attempt has the row."""

    is_held: bool
    is_cancel_wanted: bool = False


@dataclass(frozen=True, slots=True)
class Claims(Generic[Row]):
    """The rows of one model that workers claim.

    serving: the lookup from a row to what names its endpoint and profile, ending in "__"; "" where the row itself does.
    """

    model: type[Row]
    serving: str

    @property
    def kind(self) -> str:
        """Return the table's name without its app: what the logs call a row."""
        return str(self.model._meta.db_table).removeprefix("runs_")

    @property
    def pool(self) -> str:
        """Return the lookup that leads to the pool whose workers may claim a row."""
        return f"{self.serving}endpoint__pool"

    def claim(self, rows: QuerySet[Row], *, worker: WorkerRecord) -> Lease | None:
        """Claim the oldest of these rows that waits for the worker's pool, in one statement; None without any."""
        waiting = rows.filter(**{"status": "queued", "next_at__lte": Now(), self.pool: worker.pool})
        if not worker.has_engine:
            waiting = waiting.filter(**{f"{self.serving}endpoint__engine": EndpointRecord.Engine.OPENAI})
        return self.claim_oldest(waiting, worker=worker)

    def claim_oldest(self, waiting: QuerySet[Row], *, worker: WorkerRecord) -> Lease | None:
        """Claim the oldest of rows that wait and that the worker can take."""
        with transaction.atomic(savepoint=False):
            locking = waiting.order_by("pk").only("pk").select_for_update(skip_locked=True, of=("self",))
            return self.claim_chosen(*locking[:1].query.sql_with_params(), worker=worker)

    def claim_chosen(self, chosen: str, parameters: Sequence[Any], *, worker: WorkerRecord) -> Lease | None:
        """Claim the row whose id a query chooses; None where it chooses none.

        chosen: SQL that locks its row and skips locked ones, so that no two workers get one row. It runs inside the
        statement that claims.
        """
        statement = CLAIM.format(table=self.model._meta.db_table, chosen=chosen)
        with connection.cursor() as cursor:
            cursor.execute(statement, [worker.pk, lease_span().total_seconds(), *parameters])
            row = cursor.fetchone()
        return None if row is None else Lease(self.kind, row[0], row[1], worker.pk)

    def resume(self, *, worker: WorkerRecord) -> Lease | None:
        """Renew the lease of a row that this worker has claimed, and may not know of; None without any.

        The answer to a statement may be lost with the database although the statement counts.
        """
        row = self.owned_by([worker.pk]).filter(lease_until__gt=Now()).first()
        if row is None:
            return None
        lease = Lease(self.kind, row.pk, row.attempt, worker.pk)
        return lease if self.renew(lease=lease).is_held else None

    def held_row(self, lease: Lease) -> QuerySet[Row]:
        """Return a query for the row that is empty once this attempt has lost it."""
        if lease.kind != self.kind:
            raise ValueError(f"A lease of {lease} is no right to a {self.kind}.")
        return self._running().filter(pk=lease.id, attempt=lease.attempt, owner=lease.worker_id)

    def renew(self, *, lease: Lease) -> Beat:
        """Extend a valid lease. If it is lost, stop the work."""
        return Beat(is_held=self.held_row(lease).update(lease_until=lease_end()) == 1)

    def write(self, *, lease: Lease, **changes: Any) -> None:
        """Change the row in one statement. Raises LeaseLost if this attempt has lost it."""
        if self.held_row(lease).update(**changes) != 1:
            raise lost(lease)

    @contextmanager
    def locked(self, *, lease: Lease, related: Collection[str] = ()) -> Iterator[Row]:
        """Open a transaction with the row locked, if this attempt still has it. Raises LeaseLost.

        related: records to load with it.
        """
        with transaction.atomic():
            rows = self.held_row(lease).select_for_update(of=("self",))
            row = (rows.select_related(*related) if related else rows).first()
            if row is None:
                raise lost(lease)
            yield row

    def expired(self) -> QuerySet[Row]:
        """Select those whose lease has ended by the database's clock."""
        return self._running().filter(lease_until__lt=Now())

    def owned_by(self, worker_ids: Collection[int]) -> QuerySet[Row]:
        return self._running().filter(owner__in=worker_ids)

    def _running(self) -> QuerySet[Row]:
        return self.model._default_manager.filter(status="running")


def lease_span() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)


def lease_end() -> CombinedExpression:
    """Return when a lease ends that is given or renewed now."""
    return Now() + lease_span()


def lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"Attempt {lease.attempt} at {lease} no longer holds it; what it still wrote was refused.")
