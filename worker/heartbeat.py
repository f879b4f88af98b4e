"""Keeps a lease alive while its shard is worked on, and learns when to stop."""

import logging
import random
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connection

from evalboard.core.errors import LeaseLost
from runs import services
from runs.models import Worker

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

# A worker that cannot reach the database stops this long before its lease ends, by its own
# monotonic clock, so that it never decodes beside the attempt that takes over.
FENCE_SHARE = 0.1
LONGEST_PAUSE_SECONDS = 5.0
AWAY = (OperationalError, InterfaceError)  # the database's other errors are faults, and no waiting mends them


class Heartbeat:
    """A thread that renews one lease; `on_stop` is called once, from that thread, when work must stop."""

    def __init__(self, *, lease: services.Lease, worker: Worker, on_stop: Callable[[], None]) -> None:
        self.lease = lease
        self.is_lost = False
        self.is_cancel_wanted = False
        self._worker = worker
        self._on_stop = on_stop
        self._ended = threading.Event()
        self._deadline = self._next_deadline()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat-{lease.shard_id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def must_stop(self) -> bool:
        return self.is_lost or self.is_cancel_wanted

    def persist(self, step: Callable[[], Result]) -> Result:
        """Call `step`, trying again while the database is away, until the lease can no longer be held.

        Raises LeaseLost once it cannot: the shard will run again elsewhere.
        """
        pause = 0.1
        while True:
            try:
                return step()
            except AWAY as away:
                connection.close()
                if time.monotonic() + pause > self._deadline:
                    raise LeaseLost(f"The database was away until the lease ended: {away}") from away
                logger.warning("The database is away, trying again: %s", away)
                time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  jitter, not a secret
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _run(self) -> None:
        while not self._ended.wait(settings.HEARTBEAT_SECONDS):
            self._beat()
            if self.must_stop:
                self._on_stop()
                break
        connection.close()  # this thread's own

    def _beat(self) -> None:
        try:
            close_old_connections()
            beat = services.renew_lease(lease=self.lease)
            services.beat(worker=self._worker)
        except AWAY as away:
            connection.close()
            self.is_lost = time.monotonic() > self._deadline
            logger.warning("A heartbeat did not reach the database: %s", away)
            return
        self.is_lost = not beat.is_held
        self.is_cancel_wanted = beat.is_cancel_wanted
        if beat.is_held:
            self._deadline = self._next_deadline()

    @staticmethod
    def _next_deadline() -> float:
        return time.monotonic() + settings.LEASE_SECONDS * (1 - FENCE_SHARE)
