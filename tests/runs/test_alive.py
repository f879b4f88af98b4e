"""What the health checks of workers and the scheduler say, and when."""

import os
import socket
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from runs.health import alive
from runs.models import WorkerRecord
from worker import tasks


@pytest.fixture
def swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place of the test's own for the scheduler's note."""
    monkeypatch.setattr(alive, "SWEPT", tmp_path / "swept")
    return tmp_path / "swept"


def test_a_worker_that_beats_on_this_machine_lives(new_worker: Callable[..., WorkerRecord]):
    new_worker(host=socket.gethostname())
    call_command("is_alive", "worker")


@pytest.mark.parametrize(
    "changes", [{"seen_at": Now() - timedelta(minutes=2)}, {"stopped_at": Now()}, {"host": "other"}]
)
def test_one_that_is_silent_stopped_or_elsewhere_does_not(
    new_worker: Callable[..., WorkerRecord], changes: dict[str, object]
):
    new_worker(host=socket.gethostname())
    WorkerRecord.objects.update(**changes)
    with pytest.raises(CommandError, match="No worker of"):
        call_command("is_alive", "worker")


def test_a_scheduler_lives_once_it_has_swept(db: None, swept: Path):
    with pytest.raises(CommandError, match="not swept yet"):
        call_command("is_alive", "scheduler")
    tasks.reconcile()
    call_command("is_alive", "scheduler")


def test_a_scheduler_that_sweeps_no_more_does_not(swept: Path):
    alive.note_sweep()
    before = swept.stat().st_mtime - 120
    os.utime(swept, (before, before))
    with pytest.raises(CommandError, match="120 seconds ago"):
        call_command("is_alive", "scheduler")
