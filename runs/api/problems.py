"""Every failure of the API in one shape: application/problem+json. docs/api.md lists the codes."""

import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, JsonResponse
from django.http.multipartparser import MultiPartParserError
from rest_framework import exceptions

from evalboard.core.errors import EvalboardError
from runs.store import Outage, notice

logger = logging.getLogger(__name__)

CODES = {
    400: "invalid_input",
    401: "not_authenticated",
    403: "refused",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    413: "too_large",
    415: "unsupported_media_type",
    429: "too_many_requests",
}


def answer(exc: Exception, context: Mapping[str, Any]) -> JsonResponse:
    """Answer any exception of a view. Unexpected ones are logged and answered with 500."""
    request = context.get("request")
    request_id = getattr(request, "request_id", "")
    if isinstance(exc, EvalboardError):
        return problem(exc.status, exc.title, exc.detail, exc.code, request_id, fields=exc.fields)
    if isinstance(exc, exceptions.APIException):
        return _answer_framework(exc, request_id)
    if isinstance(exc, Http404):
        return problem(404, "There is no such thing", "This address names nothing.", "not_found", request_id)
    if isinstance(exc, PermissionDenied):
        return problem(403, "You may not do this", str(exc) or "You may not do this.", "refused", request_id)
    if isinstance(exc, RequestDataTooBig):
        return problem(413, "The request is too large", str(exc), "too_large", request_id)
    if isinstance(exc, MultiPartParserError | SuspiciousOperation):  # a form that is none, or has too many fields
        return problem(400, "The request cannot be read", str(exc), "malformed", request_id)
    if outage := notice(exc):
        return _answer_outage(outage, request_id)
    logger.error("Not expected in %s", context.get("view"), exc_info=exc)
    detail = "Something went wrong on the server. Send the request id to your administrator."
    return problem(500, "Evalboard could not answer", detail, "server_error", request_id)


def problem(
    status: int, title: str, detail: str, code: str, request_id: str, *, fields: Mapping[str, str] | None = None
) -> JsonResponse:
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}
    body["request_id"] = request_id
    if fields:
        body["fields"] = dict(fields)
    return JsonResponse(body, status=status, content_type="application/problem+json")


def _answer_outage(outage: Outage, request_id: str) -> JsonResponse:
    response = problem(outage.status, outage.title, f"{outage.detail} {outage.to_do}", outage.code, request_id)
    if outage.retry_after is not None:
        response["Retry-After"] = str(outage.retry_after)
    return response


def _answer_framework(exc: exceptions.APIException, request_id: str) -> JsonResponse:
    status = exc.status_code
    code = CODES.get(status, "error")
    if isinstance(exc, exceptions.ValidationError):
        fields = dict(_flat(exc.detail, ""))
        detail = "The request is not valid: " + "; ".join(f"{name}: {text}" for name, text in fields.items())
        return problem(status, "The input is not valid", detail, code, request_id, fields=fields)
    if isinstance(exc, exceptions.ParseError):
        code = "malformed"
    response = problem(status, HTTPStatus(status).phrase, str(exc.detail), code, request_id)
    if (wait := getattr(exc, "wait", None)) is not None:  # throttled
        response["Retry-After"] = str(math.ceil(wait))
    if header := getattr(exc, "auth_header", None):
        response["WWW-Authenticate"] = header
    return response


def _below(path: str, name: Any) -> str:
    """The path of a field in the field at `path`; the items of a list are named by their numbers."""
    if name == "non_field_errors":
        return path
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else str(name)


def _flat(detail: Any, path: str) -> list[tuple[str, str]]:
    """Flatten a validation error to (path of the field, problem) pairs."""
    if isinstance(detail, Mapping):
        return [pair for name, inner in detail.items() for pair in _flat(inner, _below(path, name))]
    if isinstance(detail, list):
        return [(path, " ".join(str(text) for text in detail))]
    return [(path, str(detail))]
