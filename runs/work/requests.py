"""Release, refuse and end requested work such as replays and probes, in one statement each.

Shards have their own rules (run, cases, crashes), in `shards`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from evalboard.core.errors import ProfileRefused
from runs.models import EndpointRecord, ProfileRecord
from runs.models.claimed import Requested
from runs.store import storable
from runs.webhooks import news
from runs.work import dispatch
from runs.work.claims import Claims, Lease
from runs.work.workers import refuse_if_nobody_can

CRASHES_BEFORE_FAILURE = 3
SILENT = "Its worker was not heard of for the length of a lease."
GONE = "Its worker's process is gone."

Request = TypeVar("Request", bound=Requested)


def _none_goes_on(rows: QuerySet[Request], reason: str) -> tuple[int, QuerySet[Request]]:
    return 0, rows


@dataclass(frozen=True, slots=True)
class Requests(Claims[Request], Generic[Request]):
    """The rows of one model that are requested separately.

    go_on: puts those of the rows back into the queue that go on without a worker who cannot do them; it returns how
    many they were, and the others.
    """

    go_on: Callable[[QuerySet[Request], str], tuple[int, QuerySet[Request]]] = _none_goes_on

    def release(self, *, lease: Lease, reason: str, may_fail: bool) -> None:
        """Return a row to the queue with its results so far; nothing if the lease is lost.

        may_fail: the attempt ended badly; after CRASHES_BEFORE_FAILURE of them the row has failed.
        """
        if may_fail:
            self._take(self.held_row(lease), reason, may_fail=True)
        else:
            self.let_go(self.held_row(lease), reason, may_fail=False)

    def refuse(self, *, lease: Lease, reason: str) -> None:
        """Leave a row to other workers because this one cannot honour the profile; fail it if none can."""
        ids = self.held_row(lease).values_list(f"{self.serving}endpoint", f"{self.serving}profile").first()
        if ids is None:
            return
        try:
            refuse_if_nobody_can(EndpointRecord.objects.get(pk=ids[0]), ProfileRecord.objects.get(pk=ids[1]))
        except ProfileRefused as refused:
            self._fail(self.held_row(lease), refused.detail)
        else:
            self._take(self.held_row(lease), reason, may_fail=False)

    def finish(self, *, lease: Lease, **changes: Any) -> None:
        """End a row with its results. Raises LeaseLost."""
        with transaction.atomic():
            self.write(lease=lease, **changes, lease_until=None, finished_at=Now())
            news.tell_of_work(self.kind, lease.id, status=changes["status"], error=changes.get("error", ""))

    def take_back_expired(self) -> bool:
        """Take back the rows whose lease has ended by the database's clock; whether there were any."""
        return self._take(self.expired(), SILENT, may_fail=True) > 0

    def take_back_from(self, worker_ids: Collection[int]) -> bool:
        """Take back the rows of workers whose process is gone; whether there were any."""
        return self._take(self.owned_by(worker_ids), GONE, may_fail=True) > 0

    def let_go(self, rows: QuerySet[Request], reason: str, *, may_fail: bool) -> int:
        """End or queue rows in one statement each, skipping concurrently saved ones; return how many.

        The pools of queued rows are notified.
        """
        n_failed, counted = 0, {}
        if may_fail:
            counted = {"n_crashes": F("n_crashes") + 1}
            words = f"It was begun {CRASHES_BEFORE_FAILURE} times and never came to an end. {reason}"
            n_failed = self._fail(rows.filter(n_crashes__gte=CRASHES_BEFORE_FAILURE - 1), words, **counted)
        pools = set(rows.values_list(self.pool, flat=True))
        waiting = {"status": "queued", "owner": None, "lease_until": None, "next_at": Now(), "error": storable(reason)}
        n_queued = rows.update(**waiting, **counted)
        for pool in pools:
            ring_after_commit(pool)
        return n_failed + n_queued

    def _take(self, rows: QuerySet[Request], reason: str, *, may_fail: bool) -> int:
        """Take rows from owners who cannot do them; how many there were."""
        n_going_on, others = self.go_on(rows, reason)
        return n_going_on + self.let_go(others, reason, may_fail=may_fail)

    def _fail(self, rows: QuerySet[Request], reason: str, **changes: Any) -> int:
        with transaction.atomic():
            ids = list(rows.values_list("pk", flat=True))
            n_failed = rows.update(
                status="failed", error=storable(reason), lease_until=None, finished_at=Now(), **changes
            )
            for pk in ids[:n_failed]:
                news.tell_of_work(self.kind, pk, status="failed", error=reason)
        return n_failed


def ring_after_commit(pool: str, *, n_workers: int = 1) -> None:
    """Notify the pool after commit; if that is lost, workers poll a little later."""
    transaction.on_commit(partial(dispatch.ring_or_log, pool, n_shards=n_workers), robust=True)
