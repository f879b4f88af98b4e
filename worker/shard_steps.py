"""Steps of shards on engines and external servers alike: storing outcomes, and cancelling."""

import time
from functools import partial

from evalboard.calling.calls import CallOutcome
from runs.models import EngineProcess
from runs.served import LiveServing
from runs.work import Lease, cancel_shard, record_outcomes
from worker.heartbeat import Heartbeat
from worker.jobs import Station, WorkInterrupted

BATCH = 64  # two trace blocks; more would save little of what a transaction costs
# An outcome that comes this long after the last storing is stored at once; sooner ones wait for the next outcome.
LONGEST_WAIT_SECONDS = 0.2


def end_if_cancelled(station: Station, lease: Lease, heartbeat: Heartbeat) -> bool:
    """End the shard if its run is being cancelled. Raises Interrupted for other interruptions."""
    if not station.must_end(heartbeat):
        return False
    if heartbeat.is_lost or not heartbeat.is_cancel_wanted:
        raise WorkInterrupted
    cancel_shard(lease=lease)
    return True


class Recorder:
    """One attempt's outcomes on their way to the database.

    What waits when a worker is killed is decoded again by the next attempt. A timer would store it sooner, and would
    need a thread with a connection and a lock of its own; the cost of doing without is at most one batch.
    """

    def __init__(
        self, *, heartbeat: Heartbeat, process: EngineProcess | None = None, serving: LiveServing | None = None
    ) -> None:
        self._heartbeat = heartbeat
        self._process = process
        self._serving = serving
        self._waiting: list[CallOutcome] = []
        self._flushed_at = float("-inf")

    def add(self, outcome: CallOutcome) -> None:
        """Take an outcome, storing what waits when it is due. Raises LeaseLost."""
        self._waiting.append(outcome)
        if len(self._waiting) >= BATCH or time.monotonic() - self._flushed_at > LONGEST_WAIT_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Store what waits. Raises LeaseLost; then nothing of it was stored."""
        if not self._waiting:
            return
        outcomes = tuple(self._waiting)
        step = partial(record_outcomes, process=self._process, outcomes=outcomes, serving=self._serving)
        self._heartbeat.persist(partial(step, lease=self._heartbeat.lease))
        self._waiting.clear()
        self._flushed_at = time.monotonic()
