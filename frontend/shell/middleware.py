"""Middleware for all pages: session limits, caching, compression, and error pages."""

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY, logout
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from evalboard.core.errors import EvalboardError
from frontend.shell import errors
from runs.access.login_guard import client_address
from runs.access.sessions import ADDRESS, BEGAN, SEEN
from runs.store import notice

SEEN_EVERY_SECONDS = 300  # a write for each request would cost more than the page
PERMISSIONS = ", ".join(
    f"{name}=()"
    for name in (
        *("accelerometer", "autoplay", "camera", "display-capture", "encrypted-media", "geolocation", "gyroscope"),
        *("magnetometer", "microphone", "midi", "payment", "usb"),
    )
)

Answer = Callable[[HttpRequest], HttpResponse]


def begin_session(request: HttpRequest) -> None:
    """Note the time of sign-in, from which both limits of the session count, and where it came from."""
    request.session[BEGAN] = request.session[SEEN] = time.time()
    request.session[ADDRESS] = client_address(request)


class SessionLimits:
    """Ends sessions unused for EVALBOARD_SESSION_IDLE_HOURS, or older than EVALBOARD_SESSION_DAYS.

    The idle limit is the cookie's and the stored session's own age, which each use moves on, at most every five
    minutes. A page that polls by itself uses nothing.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "\0" in (request.session.session_key or ""):  # a quoted cookie may hold one; PostgreSQL cannot look for it
            request.session = type(request.session)()
        if SESSION_KEY in request.session:
            self._look_at(request)
        return self.get_response(request)

    def _look_at(self, request: HttpRequest) -> None:
        session, now = request.session, time.time()
        if now - session.setdefault(BEGAN, now) > settings.SESSION_DAYS * 24 * 3600:
            logout(request)
        elif "HX-Request" not in request.headers and now - session.get(SEEN, 0) > SEEN_EVERY_SECONDS:
            session[SEEN] = now


class NoNul:
    """Answers a query or form with a NUL by 400: PostgreSQL cannot store it, so it names nothing.

    REST names the field that has one. A view that CSRF's middleware ignores reads its form itself.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        if request.path.startswith(errors.API):
            return None
        sent = [request.GET] if getattr(view, "csrf_exempt", False) else [request.GET, request.POST]
        texts = (text for fields in sent for name, values in fields.lists() for text in (name, *values))
        return errors.bad_request(request, detail="nul") if any("\0" in str(text) for text in texts) else None


class PrivatePages:
    """Forbids caching of personal pages, and access to device features.

    A view's own caching headers are not changed; static files are answered before.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        return response


class CompressedPages(GZipMiddleware):
    """Compresses HTML with random padding, so that its size reveals nothing of the secrets in it.

    REST answers are not compressed: their ETags are strong, and an archive is compressed already.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        return super().process_response(request, response) if is_page else response


class ErrorPages:
    """Turns domain errors and outages that no view handled into error pages."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, EvalboardError):
            return errors.domain_error(request, exception)
        cause = notice(exception)
        return errors.outage(request, cause) if cause else None
