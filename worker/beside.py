"""Threads that work next to the worker on one machine, and next to the scheduler in a team."""

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType

from django.db import DatabaseError, connections

from runs.uploads import forget_old_uploads, read_next_part

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
FORGET_SECONDS = 3600.0


class BesideThread(threading.Thread):
    """Takes steps while there are any, looks again every second, and forgets what is old every hour.

    A thread of its own, because a step may be slow and must not delay shards or sweeps. Several on one database do no
    harm: a step claims or locks what it works on. With `with` it runs as long as the block.
    """

    def __init__(self, name: str, step: Callable[[], bool], forget: Callable[[], object], problem: str) -> None:
        """Take no step yet. step: False if nothing was due. problem: what to log where one failed."""
        super().__init__(name=name, daemon=True)
        self._step, self._forget, self._problem = step, forget, problem
        self._stopped = threading.Event()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        self.join()

    def stop(self) -> None:
        """End after the step under way, which `join` waits for."""
        self._stopped.set()

    def run(self) -> None:
        forgotten_at = float("-inf")
        while not self._stopped.wait(LOOK_SECONDS):
            try:
                while not self._stopped.is_set() and self._step():
                    pass
                if time.monotonic() - forgotten_at > FORGET_SECONDS:
                    forgotten_at = time.monotonic()
                    self._forget()
            except DatabaseError as away:
                logger.warning("The database is away: %s", away)
                connections.close_all()
            except Exception:  # one bad row must not end the thread for all the others
                logger.exception(self._problem)
        connections.close_all()


def reading_suites() -> BesideThread:
    """Return the thread that parses uploaded suites: a large one takes minutes."""
    return BesideThread("suites", read_next_part, forget_old_uploads, "A suite could not be read")
