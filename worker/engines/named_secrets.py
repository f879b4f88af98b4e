"""Secrets that an endpoint names: read here from a variable or a file, and never shown.

The database has names alone. Evalboard's own secrets cannot be named: who may add an endpoint could send them anywhere.
"""

import json
import os
import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from evalboard.core.secret_names import variable_problem
from worker.engines.base import EndpointRefused

OWN_FILE_VARIABLES = re.compile(r"(EVALBOARD_|PG|DATABASE_URL|REDIS_URL).*(FILE|KEY)")
OWN_FILES = re.compile(r"(?i)evalboard|database_url|redis_url|secret_key|oidc_client_secret")  # as in compose.yaml
MAX_SECRET_BYTES = 16_384
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# What the connection itself says, and what must not be decided by an endpoint.
FIXED_HEADERS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "accept-encoding", "upgrade", "te"}
)
SHORTEST_MASKED = 4  # characters; a shorter one is no secret, and its letters stand in every text
SHORTEST_MASKED_IN_ANSWERS = 12  # "EMPTY" is a usual key of a server of one's own, and may be a right answer
MASK = "***"


class Mask:
    """Replaces secrets in what came from a server or from an exception. Its repr shows none."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms = {form for secret in secrets if len(secret) >= SHORTEST_MASKED for form in _forms(secret)}

    def __repr__(self) -> str:
        return f"<Mask of {len(self._forms)} forms>"

    def text(self, words: str) -> str:
        """Return a failure's words without the secrets."""
        for form in sorted(self._forms, key=len, reverse=True):
            words = words.replace(form, MASK)
        return words

    def answer(self, content: bytes) -> bytes:
        """Return an answer's bytes without the secrets that are too long to be there by chance."""
        for form in self._forms:
            if len(form) >= SHORTEST_MASKED_IN_ANSWERS:
                content = content.replace(form.encode(), MASK.encode())
        return content


def read_headers(auth: str, headers: Mapping[str, Any]) -> tuple[dict[str, str], Mask]:
    """Return the headers of every call with their secrets, and what hides those. Raises EndpointRefused.

    auth: the name of a variable, the absolute path of a file, or "". headers: name → a constant, or {"env": name}.
    """
    read: dict[str, str] = {}
    secrets: list[str] = []
    if auth:
        secrets.append(_read_secret(auth))
        read["Authorization"] = f"Bearer {secrets[0]}"
    for name, value in headers.items():
        if not HEADER.fullmatch(name) or name.lower() in FIXED_HEADERS:
            raise EndpointRefused(f"The endpoint's header {name[:80]!r} cannot be set.")
        if isinstance(value, Mapping):
            secrets.append(_read_secret(str(value.get("env", ""))))
            value = secrets[-1]
        elif not isinstance(value, str) or not _is_plain(value):
            raise EndpointRefused(f"The endpoint's header {name} must be a text of plain characters on one line.")
        read = {known: words for known, words in read.items() if known.lower() != name.lower()} | {name: value}
    return read, Mask(secrets)


def _read_secret(name: str) -> str:
    worker = f"on the worker {socket.gethostname()}"
    if name.startswith("/"):
        secret, where = _read_file(name, worker), f"The file {name}"
    else:
        where = f"The environment variable {name}"
        if problem := variable_problem(name):
            raise EndpointRefused(f"The endpoint's key cannot be read. {problem}")
        secret = os.environ.get(name, "").strip()
        if not secret:
            raise EndpointRefused(f"{where} is not set {worker}. Set it there, and start the worker again.")
    if not _is_plain(secret):
        raise EndpointRefused(f"{where} {worker} holds characters that no header can have.")
    return secret


def _read_file(name: str, worker: str) -> str:
    folder, path = settings.SECRETS_DIR.resolve(), Path(name).resolve()
    if not path.is_relative_to(folder) or path == folder:
        raise EndpointRefused(f"The file {name} is not under {settings.SECRETS_DIR} (EVALBOARD_SECRETS_DIR).")
    named = (value for variable, value in os.environ.items() if OWN_FILE_VARIABLES.fullmatch(variable))
    own = {Path(value).resolve() for value in named}
    if path in own or OWN_FILES.match(path.name):
        raise EndpointRefused(f"The file {name} is Evalboard's own and is sent to no endpoint. Name another one.")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_BYTES + 1)
    except OSError as problem:
        raise EndpointRefused(f"The file {name} cannot be read {worker}: {problem.strerror}.") from None
    secret = content.decode("utf-8", "replace").strip()
    if not secret or len(content) > MAX_SECRET_BYTES:
        raise EndpointRefused(f"The file {name} {worker} is empty or holds more than a key.")
    return secret


def _is_plain(words: str) -> bool:
    return words.isascii() and words.isprintable() and words == words.strip()


def _forms(secret: str) -> set[str]:
    """The secret, and as JSON writes it."""
    escaped = json.dumps(secret)[1:-1]
    return {secret, escaped, escaped.replace("/", "\\/")}
