"""Receive uploaded log files: limit their size, parse once, and delete them with the request."""

import errno
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest

from evalboard.core.errors import EvalboardError, InvalidInput
from evalboard.importers.files import LogFile
from evalboard.importers.paths import MAX_AT_ONCE
from evalboard.wording.numbers import fixed

MAX_FILES = MAX_AT_ONCE


class TooLarge(EvalboardError):
    code = "too_large"
    title = "The request is too large"
    status = 413


class NoRoom(EvalboardError):
    """The disk for temporary files, not the database's."""

    code = "disk_full"
    title = "There is no room for the files"
    status = 507


class LogUpload(UploadedFile):  # type: ignore[type-arg]  # generic in the stubs alone
    """An unnamed file on disk, readable by path, deleted when this process closes it."""

    def __init__(self, name: str | None, content_type: str | None, charset: str | None) -> None:
        self._spool = tempfile.TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR)  # noqa: SIM115 - until `forget`
        super().__init__(self._spool, name, content_type, 0, charset)

    @property
    def path(self) -> Path:
        """Return where this process finds it."""
        return Path(f"/dev/fd/{self._spool.fileno()}")


class LogUploads(FileUploadHandler):
    """Writes every file to the disk, small ones too; `forget` removes them."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request)
        self._written: list[LogUpload] = []

    def handle_raw_input(
        self, input_data: Any, meta: dict[str, str], content_length: int, boundary: str, encoding: str | None = None
    ) -> None:
        """Raises TooLarge before anything is read."""
        limit = settings.MAX_IMPORT_BYTES
        if content_length > limit:
            size = fixed(_mib(content_length), 1)
            text = f"The files have {size} MiB; at most {_mib(limit):,.0f} MiB are read at a time."
            raise TooLarge(f"{text} Send fewer of them at once, or raise EVALBOARD_MAX_IMPORT_MB.")

    def new_file(self, *args: Any, **options: Any) -> None:
        if len(self._written) == MAX_FILES:
            raise InvalidInput(
                "There are too many files.", fields={"files": f"At most {MAX_FILES} are read at a time."}
            )
        super().new_file(*args, **options)
        with _room():
            file = LogUpload(self.file_name, self.content_type, self.charset)
        self._written.append(file)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        with _room():
            self._written[-1].write(raw_data)

    def file_complete(self, file_size: int) -> LogUpload:
        file = self._written[-1]
        with _room():
            file.flush()
        file.seek(0)
        file.size = file_size
        return file

    def forget(self) -> None:
        for file in self._written:
            with suppress(OSError):  # the last of what a full disk did not take
                file.close()


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise NoRoom("The server's disk for temporary files is full, and nothing was stored.") from problem


View = Callable[..., Any]


def takes_logs(view: View) -> View:
    """Let a view receive log files, which are deleted when it ends.

    Use it outside everything that reads the form, including the CSRF check.
    """

    @wraps(view)
    def taking(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        uploads = LogUploads(request)
        request.upload_handlers = [uploads]
        try:
            return view(request, *args, **kwargs)
        finally:
            uploads.forget()

    return taking


def log_files(uploaded: Sequence[LogUpload]) -> tuple[LogFile, ...]:
    """Return the files as readers take them."""
    return tuple(LogFile(str(file.name), file.path) for file in uploaded)


def is_waiting(meta: Mapping[str, Any]) -> bool:
    """Return whether the sender of the request with this META still waits; True if unknown."""
    connection: socket.socket | None = meta.get("gunicorn.socket")
    if connection is None:
        return True
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    except BlockingIOError:  # no more data, but still connected
        return True
    except OSError:
        return False


def _mib(n_bytes: int) -> float:
    return n_bytes / 2**20
