"""Parse logs in a separate process with limits, so that no file can affect the server."""

import json
import logging
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, cast

from django.conf import settings

from evalboard.core.errors import Conflict, EvalboardError, InvalidInput
from evalboard.importers import wire
from evalboard.importers.files import MAX_BYTES, LogFile
from evalboard.importers.records import LoggedRun

MAX_RECORD_BYTES = MAX_BYTES  # of all records that a log is read as; texts that a file holds once may stand in many
MAX_READERS, MAX_IMPORTS = 2, 4  # in one web process: so many are read at a time, and so many are taken in
LOOK_SECONDS = 0.5  # how often to check whether the sender still waits
INHERITED = ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH")  # of the environment; none of it is a secret

logger = logging.getLogger(__name__)
_readers = threading.BoundedSemaphore(MAX_READERS)
_imports = threading.BoundedSemaphore(MAX_IMPORTS)


class SenderLeft(EvalboardError):
    """The sender has disconnected. Only the web server's log gets this answer."""

    code = "sender_left"
    title = "The sender of the log has left"
    status = 499


@contextmanager
def taken_in() -> Iterator[None]:
    """Bound how many imports this process has under way. Raises Conflict."""
    if not _imports.acquire(blocking=False):
        raise Conflict(f"{MAX_IMPORTS} logs are being imported already. Send this one again in a moment.")
    try:
        yield
    finally:
        _imports.release()


def read(
    files: Sequence[LogFile],
    *,
    format: str,  # noqa: A002 - the name that it has for people
    scale: str,
    is_wanted: Callable[[], bool],
) -> tuple[str, list[LoggedRun]]:
    """Parse a log in a process of its own; return the format and the runs, like `formats.read_logs`.

    Raises InvalidInput as that does, and at `files` where reading breaks a limit or its process fails; SenderLeft once
    `is_wanted` says no.
    """
    while not _readers.acquire(timeout=LOOK_SECONDS):
        _leave_unless(is_wanted)
    until = time.monotonic() + settings.IMPORT_SECONDS

    def look() -> None:
        _leave_unless(is_wanted)
        if time.monotonic() > until:
            raise _refused(_too_long())

    try:
        return _read(files, {"format": format, "scale": scale}, look)
    finally:
        _readers.release()


def _leave_unless(is_wanted: Callable[[], bool]) -> None:
    if not is_wanted():
        raise SenderLeft("The request ended before the import did, so nothing was stored.")


def _read(
    files: Sequence[LogFile], options: Mapping[str, str], look: Callable[[], None]
) -> tuple[str, list[LoggedRun]]:
    with ExitStack() as stack:
        # Passed on open: an upload has no name by which another process could find it.
        opened = [stack.enter_context(file.path.open("rb")).fileno() for file in files]
        task, errors = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        task.write(_task(files, opened, options))
        task.seek(0)
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "evalboard.importers"],
                cwd=settings.BASE_DIR,
                env={name: os.environ[name] for name in INHERITED if name in os.environ},
                pass_fds=opened,
                stdin=task,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        )
        stack.callback(process.kill)
        try:
            return wire.read_lines(_lines(cast(IO[bytes], process.stdout).fileno(), look))
        except wire.BrokenOff:
            raise _refused(_why(process.wait(), errors)) from None


def _task(files: Sequence[LogFile], opened: Sequence[int], options: Mapping[str, str]) -> bytes:
    task = {
        "files": [(file.name, f"/dev/fd/{number}") for file, number in zip(files, opened, strict=True)],
        **options,
        "parent": os.getpid(),
        "limits": {
            "cpu_seconds": settings.IMPORT_CPU_SECONDS,
            "memory_bytes": settings.IMPORT_MEMORY_BYTES,
            "seconds": settings.IMPORT_SECONDS,
        },
    }
    return json.dumps(task).encode()


def _lines(stream: int, look: Callable[[], None]) -> Iterator[bytes]:
    """Yield the lines that a process writes into a pipe, looking up from time to time whether to go on."""
    n_bytes, parts, looked_at = 0, [], time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            is_ready = selector.select(timeout=LOOK_SECONDS)
            if time.monotonic() - looked_at >= LOOK_SECONDS:
                look()
                looked_at = time.monotonic()
            if not is_ready:
                continue
            part = os.read(stream, 1 << 16)
            if not part:
                return
            n_bytes += len(part)
            if n_bytes > MAX_RECORD_BYTES:
                raise _refused(
                    f"They hold more than {MAX_RECORD_BYTES >> 20} MiB of records. Send fewer files at once."
                )
            first, *more = part.split(b"\n")
            parts.append(first)
            for begun in more:
                yield b"".join(parts)
                parts = [begun]


def _why(status: int, errors: IO[bytes]) -> str:
    """Say why a reader ended before its time."""
    if status == wire.OUT_OF_MEMORY:
        most = settings.IMPORT_MEMORY_BYTES >> 20
        return f"Reading them takes more than {most:,} MiB of memory. {_to_do('EVALBOARD_IMPORT_MEMORY_MB')}"
    if status == -signal.SIGXCPU:
        most = settings.IMPORT_CPU_SECONDS
        return f"Reading them takes more than {most:,} s of the processor. {_to_do('EVALBOARD_IMPORT_CPU_SECONDS')}"
    if status == -signal.SIGALRM:
        return _too_long()
    errors.seek(0)
    logger.error("The reader of a log ended with %s: %s", status, errors.read()[-4000:].decode("utf-8", "replace"))
    return "The reader failed. The web server's log has the reason."


def _too_long() -> str:
    return f"Reading them takes longer than {settings.IMPORT_SECONDS:,} s. {_to_do('EVALBOARD_IMPORT_SECONDS')}"


def _to_do(setting: str) -> str:
    return f"Send fewer files at once, or raise {setting}."


def _refused(problem: str) -> InvalidInput:
    return InvalidInput(f"The log cannot be read. {problem}", fields={"files": problem})
