"""Answer with contracts as JSON."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Contract


def answer(value: Contract, request: Request, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(to_json(value, request), status=status, headers=headers)


def replayed(was_made_before: bool) -> dict[str, str]:
    """Return the header that says that the same request sent again made nothing new."""
    return {"Idempotent-Replayed": "true"} if was_made_before else {}


def to_json(value: Any, request: Request) -> dict[str, Any]:
    """Return a contract's fields as JSON values, with page addresses on the requested host."""
    json: dict[str, Any] = value.to_json(origin=request.build_absolute_uri("/").removesuffix("/"))
    return json
