"""Parse uploaded suites: next to the worker on one machine, next to the scheduler in a team."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, connections

from runs.uploads import forget_old_uploads, read_next_part

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
FORGET_SECONDS = 3600.0


class SuiteReader(threading.Thread):
    """A separate thread, because a large suite takes minutes and must not delay shards or sweeps.

    Several on one database do no harm: an upload's row is locked while a part of it is read.
    """

    def __init__(self) -> None:
        super().__init__(name="suites", daemon=True)
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End after the part that is being read, which `join` waits for."""
        self._stopped.set()

    def run(self) -> None:
        n_looks = 0
        while not self._stopped.wait(LOOK_SECONDS):
            try:
                while not self._stopped.is_set() and read_next_part():
                    pass
                if n_looks % (FORGET_SECONDS / LOOK_SECONDS) == 0:
                    forget_old_uploads()
                n_looks += 1
            except DatabaseError as away:
                logger.warning("The database is away: %s", away)
                connections.close_all()
            except Exception:  # one bad row must not end the reader for all the others
                logger.exception("A suite could not be read")
        connections.close_all()


@contextmanager
def reading_suites() -> Iterator[None]:
    """Read what waits for as long as the block lasts."""
    reader = SuiteReader()
    reader.start()
    try:
        yield
    finally:
        reader.stop()
        reader.join()
