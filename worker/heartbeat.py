"""Keeps a lease alive while its row is worked on, and learns when to stop."""

import contextlib
import logging
import os
import random
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from django.conf import settings
from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
)
from psycopg.pq import TransactionStatus

from evalboard.core.errors import LeaseLost
from runs import work
from runs.models import WorkerRecord
from runs.work import Beat, Lease

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

# A worker that cannot reach the database stops this long before its lease ends, by its own
# monotonic clock, so that it never decodes beside the attempt that takes over: 9 of 90 seconds, for it may then
# be waiting for a new connection, which takes up to 5 (connect_timeout).
FENCE_SHARE = 0.1
LONGEST_PAUSE_SECONDS = 5.0
AWAY = (OperationalError, InterfaceError)  # the database's other errors are faults, and no waiting mends them


class Heartbeat:
    """Two threads next to the worker's: one renews the lease, one checks that it was renewed in time.

    The second uses no connection, so that it acts even if a statement waits for an answer that never comes. `on_stop`
    is called once, from one of them, when work must stop. `claimed_at`: the monotonic time before the row was claimed,
    from which its lease counts. `renew` is the service that renews a lease of this kind.
    """

    def __init__(
        self,
        *,
        lease: Lease,
        worker: WorkerRecord,
        on_stop: Callable[[], None],
        claimed_at: float,
        renew: Callable[..., Beat],
    ) -> None:
        self.lease = lease
        self._renew_lease = renew
        self.is_lost = False
        self.is_cancel_wanted = False
        self._worker = worker
        self._on_stop = on_stop
        self._ended = threading.Event()
        self._deadline = _deadline(claimed_at)
        self._wires: list[Any] = []  # each thread's own connection
        self._threads = [
            threading.Thread(target=each, name=f"{each.__name__[1:]} {lease}", daemon=True)
            for each in (self._beat, self._watch)
        ]

    def __enter__(self) -> Self:
        self._wires.append(_wire())
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    @property
    def must_stop(self) -> bool:
        return self.is_lost or self.is_cancel_wanted

    def persist(self, step: Callable[[], Result]) -> Result:
        """Call `step`, retrying while the database is away and the lease may be valid.

        Raises LeaseLost after that: the shard will run again elsewhere.
        """
        pause = 0.1
        while not self.is_lost:
            try:
                return step()
            except AWAY as away:
                connection.close()
                if time.monotonic() + pause > self._deadline:
                    raise LeaseLost(f"The database was away until the lease ended: {away}") from away
                logger.warning("The database is away, trying again: %s", away)
                time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  jitter, not a secret
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        raise LeaseLost(f"The lease of {self.lease} has ended, or may have; nothing more is stored.")

    def _beat(self) -> None:
        self._wires.append(_wire())
        try:
            while not self.must_stop and not self._ended.wait(settings.HEARTBEAT_SECONDS):
                self._renew()
        finally:
            connection.close()

    def _renew(self) -> None:
        asked_at = time.monotonic()  # an answer that comes late says nothing of the time since
        try:
            close_old_connections()
            beat = self._renew_lease(lease=self.lease)
            work.beat(worker=self._worker)
        except AWAY as away:
            connection.close()
            logger.warning("A heartbeat did not reach the database: %s", away)
            return
        if beat.is_held:
            self._deadline = _deadline(asked_at)
        if self.is_lost:
            return  # the other thread was faster
        self.is_lost, self.is_cancel_wanted = not beat.is_held, beat.is_cancel_wanted
        if self.must_stop:
            self._on_stop()

    def _watch(self) -> None:
        """Stop the work when the lease may have ended, and free the threads that still wait for the database."""
        while not self.must_stop:
            left = self._deadline - time.monotonic()
            if left <= 0:
                logger.warning("The lease of %s could not be renewed in time", self.lease)
                self.is_lost = True
                self._on_stop()
                for wire in self._wires:
                    _free(wire)
            elif self._ended.wait(left):
                return


def _deadline(asked_at: float) -> float:
    return asked_at + settings.LEASE_SECONDS * (1 - FENCE_SHARE)


def _wire() -> Any:
    """Return this thread's connection to the database, which Django opens and closes as needed."""
    return connections[DEFAULT_DB_ALIAS]


def _free(wire: Any) -> None:
    """Abort a statement that waits for its answer, by shutting down its socket."""
    with contextlib.suppress(AttributeError, OSError, ValueError):  # closed meanwhile, or never opened
        session = wire.connection
        if session.info.transaction_status == TransactionStatus.ACTIVE:
            # Inside a transaction Django would reconnect only to leave it; this prevents that.
            wire.closed_in_transaction = wire.in_atomic_block
            with socket.socket(fileno=os.dup(session.fileno())) as duplicate:
                duplicate.shutdown(socket.SHUT_RDWR)
