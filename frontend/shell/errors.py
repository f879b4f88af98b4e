"""Error pages, one layout for all: what failed, what was kept, what to do, and the request id.

Addresses of the API answer in the API's own shape, also where no route matched.
"""

import sys
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from evalboard.core.errors import EvalboardError
from runs.store import Outage, notice

API = "/api/"


def bad_request(
    request: HttpRequest, exception: Exception | None = None, *, holds: str = "cannot be read"
) -> HttpResponse:
    detail = f"The address or the form {holds}. Nothing was changed."
    return _answer(request, 400, "The request cannot be read", detail, "Go back and try again.", code="bad_request")


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    detail = str(exception) if exception and str(exception) else "Your role does not include this."
    what = "Nothing was changed. An admin can give you the role that it needs."
    return _answer(request, 403, "You may not do this", detail, what, code="refused")


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    detail = "This address leads nowhere: it may be mistyped, or what it named was deleted."
    return _answer(
        request, 404, "There is no such page", detail, "Look for it in the runs or suites.", code="not_found"
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    detail = "The form was sent without the mark that shows it came from this site, or the mark was too old."
    what = "Nothing was changed. Open the page again and repeat the step; cookies must be allowed."
    return _answer(request, 403, "The form could not be trusted", detail, what, code="csrf_failed")


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer an exception without context processors and queries, as the database may have failed.

    Django calls it while it handles the exception, whichever view or middleware raised that.
    """
    if outage_notice := notice(sys.exc_info()[1]):
        return outage(request, outage_notice)
    detail = "Something went wrong on this side. Runs go on: their work is kept in the database and by the runner."
    what = "Try again in a moment. If it happens again, send the request id below to your administrator."
    return _answer(request, 500, "Evalboard could not answer", detail, what, code="server_error", is_bare=True)


def outage(request: HttpRequest, cause: Outage) -> HttpResponse:
    body = {"detail": cause.detail, "what": cause.to_do}
    if request.path.startswith(API):
        body = {"detail": f"{cause.detail} {cause.to_do}", "what": ""}
    answer = _answer(request, cause.status, cause.title, **body, code=cause.code, is_bare=True)
    answer["Cache-Control"] = "no-store"
    if cause.retry_after is not None:
        answer["Retry-After"] = str(cause.retry_after)
    return answer


def domain_error(request: HttpRequest, problem: EvalboardError) -> HttpResponse:
    return _answer(request, problem.status, problem.title, problem.detail, "", code=problem.code)


def _answer(
    request: HttpRequest, status: int, title: str, detail: str, what: str, *, code: str, is_bare: bool = False
) -> HttpResponse:
    request_id = getattr(request, "request_id", "")
    if request.path.startswith(API):
        return _problem(status, title, detail, code, request_id)
    page: dict[str, Any] = {"title": title, "detail": detail, "what": what, "status": status, "code": code}
    page["phrase"] = HTTPStatus(status).phrase
    if is_bare:
        body = render_to_string("shell/error.html", {"page": page, "request_id": request_id})
    else:
        body = render_to_string("shell/error.html", {"page": page}, request=request)
    return HttpResponse(body, status=status)


def _problem(status: int, title: str, detail: str, code: str, request_id: str) -> JsonResponse:
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}
    return JsonResponse(body | {"request_id": request_id}, status=status, content_type="application/problem+json")
