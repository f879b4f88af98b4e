"""Read large logs in a process of their own, after their request was answered 202."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from contextvars import copy_context
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from evalboard.contract import imports as contract
from evalboard.contract.base import Problem
from evalboard.core.errors import Conflict, EvalboardError
from evalboard.importers.files import LogFile
from evalboard.request_ids import current
from runs.audit.context import hand_on_actor
from runs.imports.import_reading import MAX_IMPORTS
from runs.imports.imports import import_logs
from runs.models import ImportReadingRecord, ImportRecord
from runs.store import notice, require_first, storable

Status = ImportReadingRecord.Status
KEPT = timedelta(days=7)
NICENESS = 10  # requests come first
LOST = "The process that read the log ended. Nothing of the log is stored. Send it again."

logger = logging.getLogger(__name__)


def is_large(files: Sequence[LogFile]) -> bool:
    """Return whether a log is read after its request was answered."""
    return sum(file.size for file in files) > settings.IMPORT_WAIT_BYTES


def begin_reading(*, files: Sequence[LogFile], user: Any, **options: Any) -> ImportReadingRecord:
    """Start a process that imports a log, and return what it reports to.

    options: as for `import_logs`. The files may be deleted as soon as this returns. Raises Conflict where too many logs
    are being read.
    """
    if _under_way().count() >= MAX_IMPORTS:
        raise Conflict(f"{MAX_IMPORTS} large logs are being read already. Send this one again in a moment.")
    reading = ImportReadingRecord.objects.create(
        options=options,
        names=[storable(file.name)[:255] for file in files],
        n_bytes=sum(file.size for file in files),
        created_by=user,
    )
    try:
        process = _start(reading, files)
    except OSError:  # no memory, or no process more
        logger.exception("No process was started that reads log %s", reading.pk)
        _fail_lost(reading.pk)
        return reading
    waiting = copy_context()  # with the request's id
    threading.Thread(target=waiting.run, args=[_await, process, reading.pk], daemon=True).start()
    return reading


def _start(reading: ImportReadingRecord, files: Sequence[LogFile]) -> subprocess.Popen[bytes]:
    with ExitStack() as stack:
        opened = [stack.enter_context(file.path.open("rb")).fileno() for file in files]
        command = [sys.executable, "manage.py", "read_import", str(reading.pk), current.get(), *map(str, opened)]
        environment = {**os.environ, **hand_on_actor()}
        return subprocess.Popen(
            command, cwd=settings.BASE_DIR, env=environment, pass_fds=opened, stdin=subprocess.DEVNULL
        )


def read_import(reading_id: int, numbers: Sequence[int]) -> None:
    """Import the log of a reading, whose files are open under these numbers, and store how it ended.

    That it is stored is written in the transaction that stores it. This is the whole work of its process.
    """
    with suppress(OSError):  # where the service may not change priorities
        os.nice(NICENESS)
    signal.signal(signal.SIGTERM, _end)
    reading = ImportReadingRecord.objects.get(pk=reading_id)
    files = [LogFile(name, Path(f"/dev/fd/{number}")) for name, number in zip(reading.names, numbers, strict=True)]

    def store_end(source: ImportRecord, is_new: bool) -> None:
        # Also where it was taken for lost, as after an outage longer than a lease.
        ended = {"status": Status.STORED, "source": source, "is_new": is_new, "problem": None}
        ImportReadingRecord.objects.filter(pk=reading_id).update(**ended)

    has_ended = threading.Event()
    beating = threading.Thread(target=_beat, args=[reading_id, has_ended])
    beating.start()
    try:
        import_logs(files=files, user=reading.created_by, on_stored=store_end, **reading.options)
    except EvalboardError as refused:
        _fail(reading_id, refused.status, refused.title, refused.detail, refused.code, refused.fields)
    except Exception as fault:
        if outage := notice(fault):
            _fail(reading_id, outage.status, outage.title, f"{outage.detail} {outage.to_do}", outage.code)
        else:
            logger.exception("Not expected in reading %s of a log", reading_id)
            _fail(
                reading_id, 500, "The log was not read", f"{LOST} The web server's log has the reason.", "server_error"
            )
    finally:
        has_ended.set()
        beating.join()


def reading_row(reading_id: int) -> contract.ImportReading:
    """Raises NotFound."""
    rows = ImportReadingRecord.objects.filter(pk=reading_id).select_related("created_by")
    reading = require_first(tuple(rows), f"There is no reading {reading_id} of a log.")
    return contract.ImportReading(
        id=str(reading.pk),
        status=reading.status,
        names=tuple(reading.names),
        n_bytes=reading.n_bytes,
        problem=None if reading.problem is None else Problem(**reading.problem),
        imported=str(reading.source_id) if reading.source_id else None,
        is_new=reading.is_new,
        created_by=reading.created_by.get_username() if reading.created_by else None,
        created_at=reading.created_at,
    )


def readings_under_way() -> list[contract.ImportReading]:
    """Return the logs that are being read now, newest first."""
    return [reading_row(pk) for pk in _under_way().values_list("pk", flat=True)]


def end_lost_readings() -> None:
    """Mark readings that were silent for a lease as failed, and forget those that ended long ago."""
    lease = timedelta(seconds=settings.LEASE_SECONDS)
    for pk in ImportReadingRecord.objects.filter(status=Status.READING, beat_at__lt=Now() - lease).values_list(
        "pk", flat=True
    ):
        _fail_lost(pk)
    ImportReadingRecord.objects.exclude(status=Status.READING).filter(created_at__lt=Now() - KEPT).delete()


def _under_way() -> Any:
    lease = timedelta(seconds=settings.LEASE_SECONDS)
    return ImportReadingRecord.objects.filter(status=Status.READING, beat_at__gte=Now() - lease)


def _still(reading_id: int) -> Any:
    return ImportReadingRecord.objects.filter(pk=reading_id, status=Status.READING)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _beat(reading_id: int, has_ended: threading.Event) -> None:
    """Say from time to time that the reading goes on, over a connection of this thread's own."""
    with closing(connection):
        while not has_ended.wait(settings.HEARTBEAT_SECONDS):
            try:
                _still(reading_id).update(beat_at=Now())
            except Exception:  # the import itself meets the same fault, and says it
                logger.warning("Reading %s of a log could not beat", reading_id, exc_info=True)
                connection.close()


def _await(process: subprocess.Popen[bytes], reading_id: int) -> None:
    """Wait for a reading's process; where it died, its reading failed."""
    if process.wait() != 0:
        with closing(connection):
            _fail_lost(reading_id)


def _fail_lost(reading_id: int) -> None:
    _fail(reading_id, 503, "The log was not read", LOST, "reading_lost")


def _fail(
    reading_id: int, status: int, title: str, detail: str, code: str, fields: Mapping[str, str] | None = None
) -> None:
    about: dict[str, Any] = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}
    about["request_id"] = current.get()
    if fields:
        about["fields"] = dict(fields)
    _still(reading_id).update(status=Status.FAILED, problem=about)
