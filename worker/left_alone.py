"""What a worker could not serve, and leaves to others for a while."""

import time

# After that it tries again: its engine may have been updated since.
SECONDS = 60.0


class LeftAlone:
    """The ids of runs, or of probes, that this worker claims nothing of at present."""

    def __init__(self) -> None:
        self._until: dict[int, float] = {}  # monotonic

    def add(self, key: int) -> None:
        self._until[key] = time.monotonic() + SECONDS

    def now(self) -> frozenset[int]:
        """Those whose time is not over yet."""
        now = time.monotonic()
        self._until = {key: until for key, until in self._until.items() if until > now}
        return frozenset(self._until)
