"""Callers of the API: one token with every scope, unless a test brings its own."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests import build

SCOPES = ("read", "run", "sign", "admin")


class Api:
    """The API as a program calls it: addresses below /api/v1, or whole ones; JSON in and out."""

    def __init__(self, secret: str = "") -> None:
        self._client = Client(raise_request_exception=False)
        self._headers = {"Authorization": f"Bearer {secret}"} if secret else {}

    def get(self, path: str, **headers: str) -> Any:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.send("POST", path, None if body is None else json.dumps(body), **headers)

    def delete(self, path: str) -> Any:
        return self.send("DELETE", path)

    def send(
        self, method: str, path: str, body: str | bytes | None = None, type_: str = "application/json", **headers: str
    ) -> Any:
        address = path if path.startswith(("http", "/api", "/metrics")) else f"/api/v1{path}"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._client.generic(method, address, body or "", type_, headers={**self._headers, **named})


@pytest.fixture
def api(db: None) -> Api:
    return Api(build.token(build.user("root", "admin"), *SCOPES))


@pytest.fixture
def as_role(db: None) -> Callable[[str], Api]:
    """Callers by role, each with a token of every scope: the role alone decides."""
    known: dict[str, Api] = {}

    def caller(role: str) -> Api:
        if role not in known:
            known[role] = Api() if role == "anonymous" else Api(build.token(build.user(role, role), *SCOPES))
        return known[role]

    return caller
