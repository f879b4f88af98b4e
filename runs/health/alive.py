"""What a health check asks of the processes that serve no page: workers and the scheduler."""

import os
import socket
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db.models.functions import Now

from runs.models import WorkerRecord
from runs.store import own_place

# The scheduler keeps no row of its own, and whoever asks stands on its machine.
SWEPT = Path(tempfile.gettempdir()) / f"evalboard-swept-{os.getuid()}"
SWEEPS_MISSED = 4


def note_sweep() -> None:
    """Say that this machine's scheduler has just swept."""
    SWEPT.touch()


def scheduler_is_silent() -> str | None:
    """Say why this machine's scheduler does not seem to live; None where it does."""
    try:
        age = time.time() - SWEPT.stat().st_mtime
    except FileNotFoundError:
        return "The scheduler of this machine has not swept yet."
    if age > SWEEPS_MISSED * settings.RECONCILE_SECONDS:
        return f"The scheduler of this machine swept {age:.0f} seconds ago and not since."
    return None


def worker_is_silent() -> str | None:
    """Say why no worker of this machine seems to live; None where one has beaten within a lease."""
    host, place = socket.gethostname(), own_place()
    lately = Now() - timedelta(seconds=settings.LEASE_SECONDS)
    mine = WorkerRecord.objects.filter(
        host=host, place__in={place, ""}
    )  # another container may have this one's host name
    if mine.filter(stopped_at=None, seen_at__gt=lately).exists():
        return None
    return f"No worker of {host} was seen in the last {settings.LEASE_SECONDS:.0f} seconds."
