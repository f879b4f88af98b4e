"""Limit an endpoint's calls in flight and per minute over all workers, counted in the database.

A call takes a slot before it is sent and returns it when it has ended. Slots are not renewed: each lasts as long as a
call may take, and is free at once if its worker is gone.
"""

import logging
import threading
import time
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connections

from evalboard.core.errors import NotFound
from runs.models import EndpointRecord, WorkerRecord
from runs.store import DatabaseClock

logger = logging.getLogger(__name__)

PAUSE_SEEN_SECONDS = 1.0  # within which a worker learns that another one was told to wait
GRACE_SECONDS = 30.0  # between the end of a call and the end of its slot, so that no call outlives it

MAKE = """
INSERT INTO runs_callslot (endpoint_id, number)
SELECT %s, number FROM generate_series(0, %s - 1) AS number ON CONFLICT DO NOTHING
"""
# What is counted for each call waits for no disk (`lazily`): a slot that a crash of the database forgets is one call
# too many, once.

# How long until the next call may begin; where calls are counted by the minute, that is taken at once.
TURN = """
UPDATE runs_endpoint
   SET next_call_at = greatest(next_call_at, clock_timestamp()) + make_interval(secs => 60.0 / calls_per_minute)
  FROM (SELECT set_config('synchronous_commit', 'off', true)) AS lazily
 WHERE id = %s AND calls_per_minute IS NOT NULL
RETURNING extract(epoch FROM next_call_at - clock_timestamp()) - 60.0 / calls_per_minute
"""
PAUSE = "SELECT extract(epoch FROM next_call_at - clock_timestamp()) FROM runs_endpoint WHERE id = %s"
PAUSE_ALL = """
UPDATE runs_endpoint SET next_call_at = greatest(next_call_at, clock_timestamp() + make_interval(secs => %s))
 WHERE id = %s
"""
TAKE = """
WITH free AS (
  SELECT slot.id
    FROM runs_callslot slot LEFT JOIN runs_worker worker ON worker.id = slot.worker_id
   WHERE slot.endpoint_id = %s AND slot.number < %s
     AND (slot.worker_id IS NULL OR slot.until < clock_timestamp() OR worker.stopped_at IS NOT NULL
          OR worker.seen_at < clock_timestamp() - make_interval(secs => %s))
   ORDER BY slot.number DESC LIMIT 1 FOR UPDATE OF slot SKIP LOCKED)
UPDATE runs_callslot SET worker_id = %s, until = clock_timestamp() + make_interval(secs => %s)
  FROM free, (SELECT set_config('synchronous_commit', 'off', true)) AS lazily WHERE runs_callslot.id = free.id
RETURNING runs_callslot.id, extract(epoch FROM clock_timestamp())
"""
GIVE_BACK = """
UPDATE runs_callslot SET worker_id = NULL, until = NULL
  FROM (SELECT set_config('synchronous_commit', 'off', true)) AS lazily
 WHERE id = ANY(%s::bigint[]) AND worker_id = %s
"""


class CallLimits:
    """The share of an endpoint's calls that one worker may use. Thread-safe; each call is one statement.

    It has a connection of its own, since the threads that make calls have none. `clock`: for the times of calls; each
    slot that is taken sets it.
    """

    away: tuple[type[Exception], ...] = (DatabaseError,)

    def __init__(self, endpoint: EndpointRecord, *, worker: WorkerRecord, is_alone: bool) -> None:
        """is_alone: one call at a time, whatever the endpoint takes."""
        self._endpoint_id, self._worker_id = endpoint.pk, worker.pk
        self._n_slots, self._n_to_make = 1 if is_alone else endpoint.concurrency, endpoint.concurrency
        self._is_by_minute = endpoint.calls_per_minute is not None
        self._look_at = 0.0  # by the monotonic clock: no pause is looked for until then
        self.clock = DatabaseClock()
        self._lock = threading.Lock()
        self._connection = connections.create_connection("default")
        self._connection.inc_thread_sharing()
        self._not_given_back: list[int] = []

    def turn(self) -> float:
        """Return the seconds until a call may begin. With a limit per minute, this also takes a turn."""
        if not self._is_by_minute and time.monotonic() < self._look_at:
            return 0.0
        rows = self._execute(TURN, [self._endpoint_id]) or self._execute(PAUSE, [self._endpoint_id])
        if not rows:
            raise NotFound("There is no such endpoint any more.")
        wait = max(float(rows[0][0] or 0.0), 0.0)
        self._look_at = time.monotonic() + (0.0 if wait else PAUSE_SEEN_SECONDS)
        return wait

    def pause(self, seconds: float) -> None:
        """Pause the endpoint's calls of all workers."""
        self._execute(PAUSE_ALL, [seconds, self._endpoint_id])

    def take(self, *, seconds: float) -> int | None:
        """Return a slot for a call that takes at most so long; None where all are taken."""
        self.give_back()
        if self._n_to_make:
            self._execute(MAKE, [self._endpoint_id, self._n_to_make])
            self._n_to_make = 0
        gone = settings.LEASE_SECONDS
        until = seconds + GRACE_SECONDS
        rows = self._execute(TAKE, [self._endpoint_id, self._n_slots, gone, self._worker_id, until], tells_time=True)
        return rows[0][0] if rows else None

    def give_back(self, *slots: int) -> None:
        """Free slots; where the database is away, with the next one."""
        with self._lock:
            self._not_given_back += slots
            waiting = list(self._not_given_back)
        if not waiting:
            return
        try:
            self._execute(GIVE_BACK, [waiting, self._worker_id])
        except DatabaseError as away:
            logger.warning("Slots of endpoint %s are given back later: %s", self._endpoint_id, away)
            return
        with self._lock:
            self._not_given_back = [slot for slot in self._not_given_back if slot not in waiting]

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _execute(self, statement: str, values: list[Any], *, tells_time: bool = False) -> list[Any]:
        """tells_time: the last column is the database's clock."""
        with self._lock:
            self._connection.close_if_unusable_or_obsolete()
            try:
                with self._connection.cursor() as cursor:
                    sent = time.monotonic()
                    cursor.execute(statement, values)
                    rows = cursor.fetchall() if cursor.description else []
                    if tells_time and rows:
                        self.clock.hear(float(rows[0][-1]), sent=sent, answered=time.monotonic())
                    return rows
            except DatabaseError:
                self._connection.close()  # the next one reconnects
                raise
