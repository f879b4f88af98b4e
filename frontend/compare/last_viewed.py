"""The comparison last viewed in this browser, which Compare opens again."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from runs.run import oldest_first

COOKIE = "evalboard_compared"


def remember(answer: HttpResponse, baseline: int, candidate: int) -> None:
    """Keep the two runs in the browser until it is closed."""
    answer.set_cookie(
        COOKIE, f"{baseline}-{candidate}", secure=settings.SESSION_COOKIE_SECURE, httponly=True, samesite="Lax"
    )


def last(request: HttpRequest) -> tuple[int, int] | None:
    """Return baseline and candidate of the last one; None where there was none, or a run of it is gone."""
    parts = request.COOKIES.get(COOKIE, "").split("-")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        return None
    baseline, candidate = map(int, parts)
    there = len(oldest_first({baseline, candidate})) == len({baseline, candidate})
    return (baseline, candidate) if there else None
