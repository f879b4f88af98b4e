"""Secrets that an endpoint names: read here from a variable or a file, and never shown.

The database has names alone. Evalboard's own secrets cannot be named: who may add an endpoint could send them anywhere.
"""

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from evalboard.calling import headers as calling
from evalboard.calling.calls import KeyUnreadable
from evalboard.calling.mask import Mask
from evalboard.core.secret_names import is_own_file

OWN_FILE_VARIABLES = re.compile(r"(EVALBOARD_|PG|POSTGRES_|DATABASE_URL|REDIS_URL).*(FILE|KEY)")
MAX_SECRET_BYTES = 16_384


def read_headers(auth: str, headers: Mapping[str, Any]) -> tuple[dict[str, str], Mask]:
    """Return the headers of every call with their secrets, and what hides those. Raises KeyUnreadable.

    auth: the name of a variable, the absolute path of a file, or "". headers: name → a constant, or {"env": name}.
    """
    return calling.read_headers(auth, headers, read_secret)


def read_secret(name: str) -> str:
    """Return the secret in a variable or file of this worker. Raises KeyUnreadable."""
    worker = f"on the worker {socket.gethostname()}"
    if name.startswith("/"):
        return calling.require_plain(_read_file(name, worker), f"The file {name} {worker}")
    return calling.read_variable(
        name,
        allowed=settings.ENDPOINT_KEYS,
        place=f" {worker}",
        advice=" Set it there, and start the worker again.",
    )


def _read_file(name: str, worker: str) -> str:
    folder, path = settings.SECRETS_DIR.resolve(), Path(name).resolve()
    if not path.is_relative_to(folder) or path == folder:
        raise KeyUnreadable(f"The file {name} is not under {settings.SECRETS_DIR} (EVALBOARD_SECRETS_DIR).")
    named = (value for variable, value in os.environ.items() if OWN_FILE_VARIABLES.fullmatch(variable))
    own = {Path(value).resolve() for value in named}
    if path in own or is_own_file(str(path)) or is_own_file(name):
        raise KeyUnreadable(
            f"The file {name} is Evalboard's own, or the cluster's, and is sent to no endpoint. Name another one."
        )
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_BYTES + 1)
    except OSError as problem:
        raise KeyUnreadable(f"The file {name} cannot be read {worker}: {problem.strerror}.") from None
    secret = content.decode("utf-8", "replace").strip()
    if not secret or len(content) > MAX_SECRET_BYTES:
        raise KeyUnreadable(f"The file {name} {worker} is empty or holds more than a key.")
    return secret
