"""Find which server to talk to, and as whom."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalboard.client.errors import WrongUse

if TYPE_CHECKING:
    from evalboard.client.rest import RestClient

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Access:
    """A server's address, without a slash at its end, and the token to send to it."""

    url: str
    token: str


def find_access(environment: Mapping[str, str] = os.environ) -> Access:
    """Read EVALBOARD_URL and EVALBOARD_TOKEN; where they are not set, take the server that `make up` started here.

    This machine's own token is an admin's: it goes to this machine's own address and nowhere else.
    Raises WrongUse where nothing says which server is meant.
    """
    folder = Path(environment.get("EVALBOARD_DATA_DIR") or ROOT / "data")
    local_url = _read_local_url(folder)
    url = (environment.get("EVALBOARD_URL") or local_url).rstrip("/")
    if not url:
        raise WrongUse("Which server? Set EVALBOARD_URL and EVALBOARD_TOKEN, or start one here with `make up`.")
    if not url.startswith(("http://", "https://")):
        raise WrongUse(f"EVALBOARD_URL={url} is no address; it starts with http:// or https://.")
    token = environment.get("EVALBOARD_TOKEN") or (_read_local_token(folder) if url == local_url else "")
    if not token:
        raise WrongUse(f"Who asks? Set EVALBOARD_TOKEN to a token of {url}.")
    return Access(url, token)


def connect() -> "RestClient":
    """Return a client of the server that the environment names. Raises WrongUse where it names none."""
    access = find_access()
    # Here, and httpx and pydantic with it, so that nothing waits for them that asks no server: help, a wrong option.
    from evalboard.client.rest import RestClient

    return RestClient(access)


def _read_local_url(folder: Path) -> str:
    """Return the address that `evalboard up` writes down while it runs, "" where there is none."""
    try:
        note = json.loads((folder / "running.json").read_text())
    except (OSError, ValueError):
        return ""
    url = note.get("url") if isinstance(note, dict) else None
    return url.rstrip("/") if isinstance(url, str) else ""


def _read_local_token(folder: Path) -> str:
    try:
        return (folder / "token").read_text().strip()
    except OSError:
        return ""
