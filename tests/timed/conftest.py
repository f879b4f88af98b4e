"""What truly is about time: faults at random moments, and walks that may take so many seconds. Runs alone, last."""

from tests.browser.conftest import stage, watch
from tests.faults.conftest import (
    new_run,
    processes,
    redis,
    redis_port,
    scripted_python,
    setup,
    start_worker,
    wait_until,
)

__all__ = [
    "new_run",
    "processes",
    "redis",
    "redis_port",
    "scripted_python",
    "setup",
    "stage",
    "start_worker",
    "wait_until",
    "watch",
]
