"""Give each request an id and name its caller, for headers, problems and log lines; measure its time."""

import secrets
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics

from evalboard import request_ids

HEADER = "X-Request-Id"


class RequestIdMiddleware:
    """Sets `request.request_id`. It is the first middleware, so that any later failure has the id."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given_id = request.headers.get(HEADER, "")
        request_id = given_id if request_ids.SANE.fullmatch(given_id) else secrets.token_hex(8)
        request.request_id = request_id  # type: ignore[attr-defined]
        request_ids.current.set(
            request_id
        )  # stays until the thread's next request: Django logs a 404 after the middleware
        response = self.get_response(request)
        response[HEADER] = request_id
        request.META["evalboard.caller"] = _caller(request)  # for the web server's access log
        return response


def _caller(request: HttpRequest) -> str:
    """Return `token:7` or `person:3`, by id; `-` for a request that identified neither."""
    token = getattr(request, "auth", None)
    if token is not None:
        return f"token:{token.pk}"
    user = getattr(request, "_cached_user", None)
    return f"person:{user.pk}" if user is not None and user.is_authenticated else "-"


# One more series for each, which says when it began.
disable_created_metrics()  # type: ignore[no-untyped-call]
REQUESTS = CollectorRegistry()
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_seconds = Histogram(
    "evalboard_http_request_seconds",
    "Time to answer, by route and status; _count has the number of requests.",
    ["method", "route", "status"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    registry=REQUESTS,
)


class RequestTimes:
    """Counts and times answers by route template: ids and slugs would make unlimited series."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        response = self.get_response(request)
        method = request.method if request.method in METHODS else "other"
        seconds = time.perf_counter() - began
        _seconds.labels(method, _route(request), str(response.status_code)).observe(seconds)
        return response


def _route(request: HttpRequest) -> str:
    """`/api/v1/runs/<int:run_id>/`; `none` where no route matched."""
    if request.resolver_match is None:
        return "none"
    return "/" + request.resolver_match.route.replace("^", "").replace("/?$", "")
