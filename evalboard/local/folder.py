"""The data folder: all that one machine keeps. Database, models, logs, secret, the local admin token."""

import fcntl
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalboard.client.access import read_running
from evalboard.local import postgres
from evalboard.local.children import wait_until
from evalboard.local.report import CannotStart
from evalboard.wording.numbers import fixed

SAMPLE_MODEL = "smollm2-135m-instruct"
TAKE_SECONDS = 0.3
LOG_BYTES = 10 << 20  # a longer log is put aside at the next start; one that was put aside before is given up
OWNER_ONLY = 0o077  # the umask: other accounts of the machine get no right to anything that is made
NAMES = (
    "awaits-tour",
    "logs",
    "models",
    "postgres",
    "running.json",
    "secret",
    "static",
    "token",
    "verdict-key",
)  # all that the folder keeps
FREE_BYTES = 1 << 30  # the sample model takes 0.3 GB, a fresh database 0.1 GB; the rest is room to work


class DataFolder:
    """The paths of the data folder, and checks to run before anything is started on it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.logs = self.path / "logs"
        self.static = self.path / "static"
        self.awaits_tour = self.path / "awaits-tour"  # there from the first start until the tour is loaded
        self.sample_model = self.path / "models" / SAMPLE_MODEL
        self._lock: int | None = None

    def prepare(self) -> None:
        """Make the folder, closed to other accounts.

        Raises CannotStart if it cannot be written, is too full or has too long a path.
        """
        postgres.check_socket_path(self.postgres)
        try:
            for folder in (self.path, self.logs, self.sample_model.parent):
                folder.mkdir(parents=True, exist_ok=True)
            (self.logs / ".try").write_bytes(b"")
            (self.logs / ".try").unlink()
            self._close_to_others()
        except OSError as problem:
            raise CannotStart(
                f"The data folder {self.path} cannot be written ({problem.strerror}); "
                "give this user the right to, or set EVALBOARD_DATA_DIR to another folder."
            ) from problem
        free = shutil.disk_usage(self.path).free
        if free < FREE_BYTES:
            has = f"{fixed(free / 2**30, 2)} GiB free"
            raise CannotStart(
                f"The data folder {self.path} has {has} and {FREE_BYTES / 2**30:.0f} GiB is needed; "
                "make room, or set EVALBOARD_DATA_DIR to a folder on another disk."
            )

    def _close_to_others(self) -> None:
        """Take the rights of group and others from all that the folder keeps.

        The folder itself is closed too, unless it has something else in it: then it may be a person's home, or /tmp.
        """
        own = [path for name in NAMES for path in _walk(self.path / name)]
        if {path.name for path in self.path.iterdir()} <= {*NAMES, "postgres.new"}:
            own.append(self.path)
        for path in own:
            with suppress(FileNotFoundError):  # a server that still ends removes files
                mode = stat.S_IMODE(path.lstat().st_mode)
                if mode & OWNER_ONLY and not path.is_symlink():
                    path.chmod(mode & ~OWNER_ONLY)

    def _turn_logs(self) -> None:
        for log in self.logs.glob("*.log"):
            if log.stat().st_size > LOG_BYTES:
                log.rename(log.with_suffix(".log.1"))

    @property
    def postgres(self) -> Path:
        return self.path / "postgres"

    def hold(self, note: dict[str, Any]) -> None:
        """Lock the folder until this process ends. Raises CannotStart, naming the process that has the lock."""
        descriptor = os.open(self.path / "running.json", os.O_RDWR | os.O_CREAT, 0o600)
        # Again for a moment: a command that looks whether anything runs here has the lock while it looks.
        if not wait_until(lambda: _take(descriptor), TAKE_SECONDS):
            holder = self._read_note(descriptor)
            os.close(descriptor)
            raise CannotStart(
                f"Evalboard already runs on {self.path}, at {holder.get('url', 'an address not yet known')} "
                f"(process {holder.get('pid', 'unknown')}); end it with Ctrl-C, or set EVALBOARD_DATA_DIR and PORT to "
                "start another."
            )
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(note).encode(), 0)
        self._lock = descriptor  # closing it would let go of the folder
        self._turn_logs()  # only now: no other process writes them

    def release(self) -> None:
        if self._lock is not None:
            os.ftruncate(self._lock, 0)  # nothing runs here any more; the command line reads this file
            os.close(self._lock)
            self._lock = None

    def secret(self, name: str = "secret") -> str:
        """Return the key that signs sessions, or another: random, made once, readable by this user only."""
        path = self.path / name
        try:
            secret = path.read_text().strip()
        except FileNotFoundError:
            secret = ""
        if secret:
            return secret
        # Whole or not at all: a kill between making and filling the file must not leave an empty key.
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        made = secrets.token_urlsafe(50)
        with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(made)
        new.rename(path)
        return made

    def address(self) -> str | None:
        """Return the page's address while something runs on this folder, else None."""
        url, runs = read_running(self.path)
        return url if url and runs else None

    def token(self) -> str | None:
        """Return the local admin token that `manage.py load_samples` keeps here."""
        try:
            return (self.path / "token").read_text().strip() or None
        except FileNotFoundError:
            return None

    @staticmethod
    def _read_note(descriptor: int) -> dict[str, Any]:
        try:
            note = json.loads(os.pread(descriptor, 4096, 0))
        except ValueError:
            return {}
        return note if isinstance(note, dict) else {}


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _walk(top: Path) -> Iterator[Path]:
    """Yield a file, or a folder and all below it; links are not followed."""
    if not top.is_symlink() and top.is_dir():
        for folder, _, files in os.walk(top):
            yield Path(folder)
            yield from (Path(folder, name) for name in files)
    elif top.exists():
        yield top
