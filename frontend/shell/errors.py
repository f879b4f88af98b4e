"""Error pages, one layout for all: what failed, what was kept, what to do, and the request id.

Addresses of the API answer in the API's own shape, also where no route matched.
"""

import sys
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from evalboard.core.errors import EvalboardError
from evalboard.wording.messages import Messages
from runs.store import Outage, notice

API = "/api/"
SAID = Messages(
    "error_page",
    {
        ("request", "denies"): {
            "unreadable": "The address or the form cannot be read. Nothing was changed.",
            "nul": "The address or the form has a NUL character (U+0000), which cannot be stored. Remove it. Nothing "
            "was changed.",
            "no_role": "Your role does not include this.",
            "no_page": "No page has this address. It may be mistyped, or what it named was deleted.",
            "no_mark": "You signed in again after this page was opened, or its cookies are missing.",
        },
        ("request", "advises"): {
            "go_back": "Go back and try again.",
            "ask_admin": "Nothing was changed. An admin can give you the role that it needs.",
            "search": "Look for it in the runs or suites.",
            "repeat": "Nothing was changed. Open the form again and send it; cookies must be allowed.",
            "try_again": "Try again in a moment. If it happens again, send the request id below to your administrator.",
        },
        ("server", "asserts"): {
            "failed": "Evalboard failed. Runs go on: their work is kept in the database and by the runner.",
        },
    },
)


def bad_request(
    request: HttpRequest, exception: Exception | None = None, *, detail: str = "unreadable"
) -> HttpResponse:
    """Answer a request that cannot be read. detail: a code of SAID."""
    return _answer(
        request, 400, "The request cannot be read", SAID.write(detail), SAID.write("go_back"), code="bad_request"
    )


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    detail = str(exception) if exception and str(exception) else SAID.write("no_role")
    return _answer(request, 403, "You may not do this", detail, SAID.write("ask_admin"), code="refused")


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, 404, "There is no such page", SAID.write("no_page"), SAID.write("search"), code="not_found")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _answer(
        request, 403, "The form is no longer valid", SAID.write("no_mark"), SAID.write("repeat"), code="csrf_failed"
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer an exception without context processors and queries, as the database may have failed.

    Django calls it while it handles the exception, whichever view or middleware raised that.
    """
    if outage_notice := notice(sys.exc_info()[1]):
        return outage(request, outage_notice)
    detail, what = SAID.write("failed"), SAID.write("try_again")
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
