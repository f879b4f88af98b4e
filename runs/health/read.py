"""Check whether the installation can take work: disk, database, migrations, runner, doorbell."""

import shutil
import threading
import time
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, Error, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now

from runs.models import WorkerRecord
from runs.store import limit_statements_here, outage
from runs.work import dispatch

MIN_FREE_BYTES = 256 * 1024**2  # PostgreSQL's log alone grows in steps of 16 MiB
ASK_AGAIN_SECONDS = 5.0
DATABASE_SECONDS = 3.0  # within which it must answer

_asking = threading.Lock()
_probing = threading.Lock()
_probe: "_DatabaseProbe | None" = None
_answers: dict[str, tuple[float, str | None]] = {}  # broker → (when it was asked, what it said)


def what_is_missing() -> dict[str, str]:
    """List each part that is not ready, with one sentence; empty when all are."""
    full = disk_problem()
    return ({"disk": full} if full else {}) | _missing_in_database()


def disk_problem() -> str | None:
    """Return the problem while the data folder or the database has no free space; else None.

    The database's error is remembered for a minute, per process.
    """
    if outage.was_disk_full_lately():
        return "The database's disk was full within the last minute; make room where PostgreSQL keeps its data."
    free = free_bytes()
    if free >= MIN_FREE_BYTES:
        return None
    return (
        f"{settings.DATA_DIR} has {free / 1024**2:.0f} MiB free, less than {MIN_FREE_BYTES // 1024**2} MiB; "
        "make room on its disk."
    )


def free_bytes() -> int:
    """Return the room on the disk of the data folder, or of the folder in which it would be made."""
    folder = Path(settings.DATA_DIR)
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def doorbell_problem() -> str | None:
    """Return one sentence while the broker does not answer; None when it does, or when none is configured.

    Asked by one thread every few seconds; the others go by the last answer, so that no page waits in a row.
    """
    if not settings.REDIS_URL:
        return None
    asked_at, problem = _answers.get(settings.REDIS_URL, (float("-inf"), None))
    if time.monotonic() - asked_at < ASK_AGAIN_SECONDS or not _asking.acquire(blocking=False):
        return problem
    try:
        problem = _ask_doorbell()
        _answers[settings.REDIS_URL] = (time.monotonic(), problem)
    finally:
        _asking.release()
    return problem


def _ask_doorbell() -> str | None:
    try:
        dispatch.ask()
    except dispatch.DoorbellAway:
        return (
            "Redis does not answer, so workers hear of new work late: "
            f"they look by themselves every {settings.LOOK_SECONDS:g} s. Nothing is lost."
        )
    return None


class _DatabaseProbe:
    """One question to the database over a connection of its own.

    A frozen database takes connections and says nothing. The question is asked in a thread, as no setting limits how
    long a client waits for an answer. Requests that come meanwhile share it, so a frozen database costs one thread.
    """

    def __init__(self) -> None:
        self._answers = False
        self._has_ended = threading.Event()
        threading.Thread(target=self._ask, daemon=True).start()

    def _ask(self) -> None:
        own = connection.copy()
        own.settings_dict["OPTIONS"] = {**own.settings_dict["OPTIONS"], "connect_timeout": round(DATABASE_SECONDS)}
        try:
            with own.cursor() as cursor:
                cursor.execute("SELECT 1")
            self._answers = True
        except Error:
            pass
        finally:
            own.close()
            self._has_ended.set()

    def has_ended(self) -> bool:
        return self._has_ended.is_set()

    def answers(self) -> bool:
        """Wait for the answer, at most DATABASE_SECONDS, and tell whether there is one."""
        return self._has_ended.wait(DATABASE_SECONDS) and self._answers


def _database_answers() -> bool:
    global _probe
    with _probing:
        if _probe is None or _probe.has_ended():
            _probe = _DatabaseProbe()
        probe = _probe
    return probe.answers()


def _missing_in_database() -> dict[str, str]:
    if not _database_answers():
        return {"database": f"It does not answer within {DATABASE_SECONDS:.0f} seconds."}
    try:
        with transaction.atomic():
            limit_statements_here(DATABASE_SECONDS)
            executor = MigrationExecutor(connection)
            if executor.migration_plan(executor.loader.graph.leaf_nodes()):
                return {"migrations": "Not all are applied; run `manage.py migrate`."}
            lease = timedelta(seconds=settings.LEASE_SECONDS)
            if not WorkerRecord.objects.filter(stopped_at=None, seen_at__gt=Now() - lease).exists():
                return {"runner": f"None was seen in the last {settings.LEASE_SECONDS:.0f} seconds; start one."}
    except DatabaseError:
        return {"database": f"It does not answer within {DATABASE_SECONDS:.0f} seconds."}
    return {}
