"""`evalboard signin`: a fresh sign-in link of the installation that runs on this machine."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from evalboard.local import postgres
from evalboard.local.folder import DataFolder
from evalboard.local.report import CannotStart

ROOT = Path(__file__).resolve().parents[2]
PERSON = "local"  # as whom `evalboard up` signs its own person in


def fresh_link(environment: Mapping[str, str]) -> str:
    """Return the whole address; it signs in once, within a day. Raises CannotStart where nothing runs here."""
    folder = DataFolder(Path(environment.get("EVALBOARD_DATA_DIR") or ROOT / "data"))
    address = folder.address()
    if address is None:
        raise CannotStart(f"Nothing runs on {folder.path}; `make up` starts it, and prints a link.")
    server = postgres.Server(folder.postgres, log=folder.logs / "postgres.log")
    own = {
        "DATABASE_URL": environment.get("DATABASE_URL") or server.url("evalboard"),
        "EVALBOARD_SECRET_KEY": environment.get("EVALBOARD_SECRET_KEY") or folder.secret(),
        "EVALBOARD_DATA_DIR": str(folder.path),
    }
    command = [sys.executable, str(ROOT / "manage.py"), "sign_in_link", PERSON]
    made = subprocess.run(command, cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        last = made.stderr.strip().rpartition("\n")[2]
        raise CannotStart(f"No link could be made: {last}")
    return address + made.stdout.strip()
