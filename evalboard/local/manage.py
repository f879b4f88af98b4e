"""Management commands on the installation that runs on this machine."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from evalboard.local import postgres
from evalboard.local.folder import DataFolder
from evalboard.local.report import CannotStart

ROOT = Path(__file__).resolve().parents[2]


def data_folder(environment: Mapping[str, str]) -> DataFolder:
    """Return the data folder of this machine's installation, whether it is there or not."""
    return DataFolder(Path(environment.get("EVALBOARD_DATA_DIR") or ROOT / "data"))


def running_folder(environment: Mapping[str, str]) -> tuple[DataFolder, str]:
    """Return the data folder and the address of what runs on it. Raises CannotStart if nothing does."""
    folder = data_folder(environment)
    address = folder.address()
    if address is None:
        raise CannotStart(f"Nothing runs on {folder.path}; `make up` starts it, and prints a link.")
    return folder, address


def manage(environment: Mapping[str, str], folder: DataFolder, *arguments: str, failed: str) -> str:
    """Run a management command on a folder's database and return its output.

    Raises CannotStart, which begins with `failed`, with the last lines of the command.
    """
    server = postgres.Server(folder.postgres, log=folder.logs / "postgres.log")
    own = {
        "DATABASE_URL": environment.get("DATABASE_URL") or server.url("evalboard"),
        "EVALBOARD_SECRET_KEY": environment.get("EVALBOARD_SECRET_KEY") or folder.secret(),
        "EVALBOARD_VERDICT_KEY": environment.get("EVALBOARD_VERDICT_KEY") or folder.secret("verdict-key"),
        "EVALBOARD_DATA_DIR": str(folder.path),
    }
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    made = subprocess.run(command, cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise CannotStart(f"{failed}: {made.stderr.strip().rpartition(chr(10))[2]}")
    return made.stdout.strip()
