"""A PostgreSQL server for a test run, copied from a data folder that was migrated once for this schema.

The folder is kept in .pytest_cache under a digest of all that decides the schema: our migrations, and the locked
packages (Django, its apps, PostgreSQL's wheel). A copy takes a tenth of a second, migrating takes five.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalboard.local import postgres

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".pytest_cache" / "clusters"
DATABASE = "test_evalboard"


@contextmanager
def serve_cluster() -> Iterator[str]:
    """Start a server on a copy of the migrated folder. Yield the URL of its database; at the end the copy is gone."""
    with short_folder() as folder:
        copy_migrated(folder / "postgres")
        with _server(folder) as server:
            yield server.url(DATABASE)


def copy_migrated(target: Path) -> None:
    """Copy the migrated folder to where a server will lie; its database is called DATABASE."""
    _copy(_migrated_folder(), target)


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder with a short path, for a Unix socket's may have about 100 bytes; pytest's own are longer."""
    folder = Path(tempfile.mkdtemp(prefix="evalboard-test-"))
    try:
        folder.chmod(0o711)  # where root runs the tests, PostgreSQL runs under another account
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _server(folder: Path) -> Iterator[postgres.Server]:
    server = postgres.Server(folder / "postgres", log=folder / "postgres.log", is_durable=False)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _migrated_folder() -> Path:
    """Return the kept folder of this schema; made now where there is none, while other processes wait for it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    kept = CACHE / _schema_digest()
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            for older in CACHE.glob("*/"):  # of another schema, or cut off
                shutil.rmtree(older)
            _migrate(kept)
    return kept


def _migrate(kept: Path) -> None:
    with short_folder() as folder:
        with _server(folder) as server:
            url = server.create_database(DATABASE)
            command = [sys.executable, "manage.py", "migrate", "--verbosity=0", "--skip-checks"]
            subprocess.run(command, cwd=ROOT, env=os.environ | {"DATABASE_URL": url}, check=True)
        half = kept.with_suffix(".new")
        _copy(folder / "postgres", half)
    half.rename(kept)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "--archive", "--reflink=auto", source, target], check=True)


def _schema_digest() -> str:
    migrations = sorted((ROOT / "runs" / "migrations").glob("*.py"))
    read = [file.read_bytes() for file in (*migrations, ROOT / "requirements" / "dev.txt", Path(postgres.__file__))]
    return hashlib.sha256(b"\0".join(read)).hexdigest()[:16]
