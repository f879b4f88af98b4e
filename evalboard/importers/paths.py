"""The files of a log as a person names them: files, folders, and `-` for standard input."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

from evalboard.core.errors import InvalidInput
from evalboard.importers.files import LogFile
from evalboard.wording.numbers import counted

STDIN = "-"
MAX_LOOKED_AT = 10_000  # files in a folder
MAX_AT_ONCE = 20  # files that a server reads at a time
TOGETHER = {"lm_eval", "batch"}  # formats whose logs are of several files


@dataclass(frozen=True, slots=True)
class OpenedLogs:
    """The files to read, and the names of those in folders that no known format fits."""

    files: list[LogFile] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def groups(self, log_format: str) -> list[list[LogFile]]:
        """Return the files as they are to be sent: those of one format together, and MAX_AT_ONCE at most.

        Files that belong together stay so, and so do all where no format fits one of them: the server says what is
        wrong. log_format: the one that a person names, or "auto".
        """
        if len(self.files) == 1 or not all(os.access(file.path, os.R_OK) for file in self.files):
            return [self.files]
        from evalboard.importers.formats import AUTO, recognise  # here as below

        by_format: dict[str, list[LogFile]] = {}
        name = log_format if log_format != AUTO else recognise(self.files)
        for file in self.files:
            by_format.setdefault(name or recognise([file]), []).append(file)
        if "" in by_format:
            return [self.files]
        return [part for fitting, files in by_format.items() for part in _parts(files, is_one=fitting in TOGETHER)]


def _parts(files: list[LogFile], *, is_one: bool) -> list[list[LogFile]]:
    n = len(files) if is_one else MAX_AT_ONCE
    return [files[at : at + n] for at in range(0, len(files), n)]


@contextmanager
def open_logs(paths: Sequence[Path]) -> Iterator[OpenedLogs]:
    """Yield the files at these paths; content of standard input is deleted afterwards.

    Of a folder these are the files in it, and in folders in it, that a known format fits; hidden ones are left out
    without a word. Raises InvalidInput for a folder without such a file.
    """
    opened = OpenedLogs()
    with ExitStack() as stack:
        for path in paths:
            if str(path) == STDIN:
                spool = stack.enter_context(TemporaryFile())
                shutil.copyfileobj(sys.stdin.buffer, spool)
                spool.flush()
                opened.files.append(LogFile("stdin", Path(f"/dev/fd/{spool.fileno()}")))
            elif path.is_dir():
                _look_into(path, opened)
            else:
                _check_readable(path)
                opened.files.append(LogFile(path.name, path))
        yield opened


def _check_readable(path: Path) -> None:
    if not path.is_file():  # a pipe's first byte is read once; what is not there is left to who opens it
        return
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be read: {problem.strerror}.") from problem


def _look_into(folder: Path, opened: OpenedLogs) -> None:
    # Here, as it brings numpy, which a file that is only sent on does not need.
    from evalboard.importers.formats import recognise

    n_before = len(opened.files)
    inside = (path for path in folder.rglob("*") if not any(part[0] == "." for part in path.relative_to(folder).parts))
    paths = sorted(path for path in inside if path.is_file())
    if len(paths) > MAX_LOOKED_AT:
        raise InvalidInput(f"{folder} holds {len(paths):,} files; the most that is looked at is {MAX_LOOKED_AT:,}.")
    for path in paths:
        _check_readable(path)
        file = LogFile(path.relative_to(folder).as_posix(), path)
        if recognise([file]):
            opened.files.append(file)
        else:
            opened.left_out.append(file.name)
    if len(opened.files) == n_before:
        if not paths:
            raise InvalidInput(f"{folder} holds no file.")
        raise InvalidInput(f"{folder} holds no log, but {counted(len(paths), 'file')} of no known format.")
