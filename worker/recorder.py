"""Stores outcomes as they come: one by one from a slow engine, in batches from a fast one."""

import time
from functools import partial

from evalboard.core.provenance import Outcome
from runs import services
from runs.models import EngineProcess
from worker.heartbeat import Heartbeat

BATCH = 64  # two trace blocks; more would save little of what a transaction costs
# An outcome that comes this long after the last storing is stored at once; sooner ones wait for the next outcome.
LONGEST_WAIT_SECONDS = 0.2


class Recorder:
    """One attempt's outcomes on their way to the database.

    What waits when a worker is killed is decoded again by the next attempt. A timer would store it sooner, and would
    need a thread with a connection and a lock of its own; the cost of doing without is at most one batch.
    """

    def __init__(self, *, heartbeat: Heartbeat, process: EngineProcess | None) -> None:
        self._heartbeat = heartbeat
        self._process = process
        self._waiting: list[Outcome] = []
        self._flushed_at = float("-inf")

    def add(self, outcome: Outcome) -> None:
        """Take an outcome, storing what waits when it is due. Raises LeaseLost."""
        self._waiting.append(outcome)
        if len(self._waiting) >= BATCH or time.monotonic() - self._flushed_at > LONGEST_WAIT_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Store what waits. Raises LeaseLost; then nothing of it was stored."""
        if not self._waiting:
            return
        outcomes = tuple(self._waiting)
        self._heartbeat.persist(
            partial(services.record_outcomes, lease=self._heartbeat.lease, process=self._process, outcomes=outcomes)
        )
        self._waiting.clear()
        self._flushed_at = time.monotonic()
