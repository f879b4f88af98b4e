"""Find which server to talk to, and as whom."""

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalboard.client.errors import Unreachable, WrongUse

if TYPE_CHECKING:
    from evalboard.client.rest import RestClient

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Access:
    """A server's address, without a slash at its end, and the token to send to it."""

    url: str
    token: str


def find_access(environment: Mapping[str, str] = os.environ) -> Access:
    """Read EVALBOARD_URL and EVALBOARD_TOKEN; by default use the server that `make up` started here.

    This machine's token is an admin's: it is sent only to this machine's own address. Raises WrongUse if no server is
    named, and Unreachable if that of `make up` was killed.
    """
    folder = Path(environment.get("EVALBOARD_DATA_DIR") or ROOT / "data")
    local_url, runs = read_running(folder)
    if local_url and not runs and not environment.get("EVALBOARD_URL"):
        raise Unreachable(f"The server at {local_url} is not running; start it with `make up`.")
    url = (environment.get("EVALBOARD_URL") or local_url).rstrip("/")
    if not url:
        raise WrongUse("No server is set. Set EVALBOARD_URL and EVALBOARD_TOKEN, or start one here with `make up`.")
    if not url.startswith(("http://", "https://")):
        raise WrongUse(f"EVALBOARD_URL={url} is no address; it starts with http:// or https://.")
    token = environment.get("EVALBOARD_TOKEN") or (_read_local_token(folder) if url == local_url else "")
    if not token:
        raise WrongUse(f"No token is set. Create one at {url} under Settings, Tokens, and set EVALBOARD_TOKEN to it.")
    return Access(url, token)


def connect() -> "RestClient":
    """Return a client of the server that the environment names. Raises WrongUse where it names none."""
    access = find_access()
    # Here, and httpx and pydantic with it, so that nothing waits for them that asks no server: help, a wrong option.
    from evalboard.client.rest import RestClient

    return RestClient(access.url, access.token)


def read_running(folder: Path) -> tuple[str, bool]:
    """Return the address that `evalboard up` wrote down ("" if none), and whether it still runs.

    It locks the note until it ends, however it ends; a killed one leaves the note behind.
    """
    try:
        with (folder / "running.json").open() as file:
            note = json.load(file)
            url = note.get("url") if isinstance(note, dict) else None
            return (url.rstrip("/"), _is_held(file.fileno())) if isinstance(url, str) else ("", False)
    except (OSError, ValueError):
        return "", False


def _is_held(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # until the file is closed, a moment later
    except BlockingIOError:
        return True
    return False


def _read_local_token(folder: Path) -> str:
    try:
        return (folder / "token").read_text().strip()
    except OSError:
        return ""
