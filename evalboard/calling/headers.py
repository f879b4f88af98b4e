"""Build the headers of every call, with secrets read at the time of the call and never shown."""

import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from evalboard.calling.calls import EndpointRefused, KeyUnreadable
from evalboard.calling.mask import Mask
from evalboard.core.secret_names import variable_problem

HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# What the connection itself says, and what must not be decided by an endpoint.
FIXED_HEADERS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "accept-encoding", "upgrade", "te"}
)


def read_variable(name: str, *, allowed: Collection[str], place: str = "", advice: str = "") -> str:
    """Return the secret in an environment variable. Raises KeyUnreadable.

    allowed: patterns of the variables that may be read. place: behind its name, which machine's it is. advice: what to
    do where it is not set.
    """
    if problem := variable_problem(name, allowed=allowed):
        raise KeyUnreadable(f"The endpoint's key cannot be read. {problem}")
    if not (secret := os.environ.get(name, "").strip()):
        raise KeyUnreadable(f"The environment variable {name} is not set{place}.", advice)
    return require_plain(secret, f"The environment variable {name}{place}")


def require_plain(secret: str, where: str) -> str:
    """Return a secret that can be a header. Raises KeyUnreadable, which names where it was read."""
    if not _is_plain(secret):
        raise KeyUnreadable(f"{where} holds characters that no header can have.")
    return secret


def read_headers(
    auth: str, headers: Mapping[str, Any], read_secret: Callable[[str], str]
) -> tuple[dict[str, str], Mask]:
    """Return the headers of every call with their secrets, and what hides those. Raises EndpointRefused.

    auth: where the key is, as `read_secret` takes it, or "". headers: name → a constant, or {"env": name}.
    """
    read: dict[str, str] = {}
    secrets: list[str] = []
    if auth:
        secrets.append(read_secret(auth))
        read["Authorization"] = f"Bearer {secrets[0]}"
    for name, value in headers.items():
        if not HEADER.fullmatch(name) or name.lower() in FIXED_HEADERS:
            raise EndpointRefused(f"The endpoint's header {name[:80]!r} cannot be set.")
        if isinstance(value, Mapping):
            secrets.append(read_secret(str(value.get("env", ""))))
            value = secrets[-1]
        elif not isinstance(value, str) or not _is_plain(value):
            raise EndpointRefused(f"The endpoint's header {name} must be a text of plain characters on one line.")
        read = {known: words for known, words in read.items() if known.lower() != name.lower()} | {name: value}
    return read, Mask(secrets)


def _is_plain(words: str) -> bool:
    return words.isascii() and words.isprintable() and words == words.strip()
