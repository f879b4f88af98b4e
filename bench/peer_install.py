"""Inspect in an environment of its own, apart from what is locked: python -m bench.peer_install."""

import subprocess
import venv
from importlib.metadata import Distribution
from pathlib import Path

PEERS = Path(__file__).resolve().parent / "results" / "peers"
INSPECT, VERSION = "inspect-ai", "0.3.285"
COMMAND = ".venv/bin/python -m bench.peer_install"
_PYTHON = PEERS / "bin" / "python"


def find() -> Path | None:
    """Return the interpreter that has Inspect, None where nobody has installed it."""
    folders = [str(folder) for folder in PEERS.glob("lib/python*/site-packages")]
    return _PYTHON if any(Distribution.discover(name=INSPECT, path=folders)) else None


def install() -> Path:
    """Install Inspect where it is missing, and return its interpreter."""
    if not _PYTHON.exists():
        venv.create(PEERS, with_pip=True)
    subprocess.run([_PYTHON, "-m", "pip", "install", "--quiet", f"{INSPECT}=={VERSION}"], check=True)
    return _PYTHON


if __name__ == "__main__":
    install()
