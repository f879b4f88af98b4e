"""Files that are sent to be read once: measured before, counted while they come, and gone with the request."""

import errno
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http import HttpRequest

from evalboard.core.errors import EvalboardError, InvalidInput
from runs.importers.files import LogFile

MAX_FILES = 20


class TooLarge(EvalboardError):
    code = "too_large"
    title = "The request is too large"
    status = 413


class NoRoom(EvalboardError):
    """The disk for temporary files, not the database's."""

    code = "disk_full"
    title = "There is no room for the files"
    status = 507


class LogUpload(TemporaryFileUploadHandler):
    """Writes every file to the disk, small ones too, since readers take paths; `forget` removes them."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request)
        self._written: list[TemporaryUploadedFile] = []

    def handle_raw_input(
        self, input_data: Any, meta: dict[str, str], content_length: int, boundary: str, encoding: str | None = None
    ) -> None:
        """Raises TooLarge before anything is read."""
        limit = settings.MAX_IMPORT_BYTES
        if content_length > limit:
            said = f"The files have {_mib(content_length):,.1f} MiB; at most {_mib(limit):,.0f} MiB are read at a time."
            raise TooLarge(f"{said} Send fewer of them at once, or raise EVALBOARD_MAX_IMPORT_MB.")

    def new_file(self, *args: Any, **options: Any) -> None:
        if len(self._written) == MAX_FILES:
            raise InvalidInput(
                "There are too many files.", fields={"files": f"At most {MAX_FILES} are read at a time."}
            )
        super().new_file(*args, **options)
        self._written.append(self.file)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        try:
            super().receive_data_chunk(raw_data, start)
        except OSError as problem:
            if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise NoRoom("The server's disk for temporary files is full, and nothing was stored.") from problem

    def forget(self) -> None:
        for file in self._written:
            file.close()


View = Callable[..., Any]


def takes_logs(view: View) -> View:
    """Let a view take a log's files, which are gone when it has ended, however it ends.

    Stands above whatever looks at the form, the check of its CSRF token included.
    """

    @wraps(view)
    def taking(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        upload = LogUpload(request)
        request.upload_handlers = [upload]
        try:
            return view(request, *args, **kwargs)
        finally:
            upload.forget()

    return taking


def log_files(uploaded: Sequence[TemporaryUploadedFile]) -> tuple[LogFile, ...]:
    """The files as readers take them."""
    return tuple(LogFile(str(file.name), Path(file.temporary_file_path())) for file in uploaded)


def _mib(n_bytes: int) -> float:
    return n_bytes / 2**20
