"""Live parts of a page: an open page polls for one, and gets it if it has changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from evalboard.core.digest import short_digest

ROWS = "rows"  # the part of a list's page that follows
MOVING_SECONDS, RESTING_SECONDS = 3, 10


@dataclass(frozen=True, slots=True)
class LiveRows:
    """A rendered list, its polling address and interval in seconds."""

    html: SafeString
    url: str
    seconds: int


def digest_of(shown: str) -> str:
    """Return a short digest by which an open page names what it shows."""
    return short_digest(shown.encode()).hex()


def answer_part(request: HttpRequest, template: str, page: Mapping[str, Any], *, seen: str) -> HttpResponse:
    """Return a rendered part, or 204 if the page shows it already. seen: its present digest."""
    answer = HttpResponse(status=204) if request.GET.get("seen") == seen else render(request, template, page)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def answer_progress(request: HttpRequest, template: str, page: Mapping[str, Any], *, is_over: bool) -> HttpResponse:
    """Return the part of a page that follows work. `is_part` is set in it.

    is_over: the rest of the open page is out of date, and the page loads again.
    """
    answer = render(request, template, {**page, "is_part": True})
    answer.headers["Cache-Control"] = "no-store"
    if is_over:
        answer.headers["HX-Refresh"] = "true"
    return answer


def answer_list(
    request: HttpRequest, template: str, rows: str, page: Mapping[str, Any], *, is_moving: bool, status: int = 200
) -> HttpResponse:
    """Return the page of a live list, or only its rows if an open page polls for them.

    rows: the template of the rows, rendered only from `page`, which also gets them as `live`. is_moving: whether a row
    is in progress, which makes the page poll more often.
    """
    html = render_to_string(rows, dict(page))
    seen = digest_of(html)
    query = request.GET.copy()
    query["part"], query["seen"] = ROWS, seen
    path = getattr(request, "form_page", request.path)
    live = LiveRows(html, f"{path}?{query.urlencode()}", MOVING_SECONDS if is_moving else RESTING_SECONDS)
    if request.method == "GET" and request.GET.get("part") == ROWS:
        return answer_part(request, "shell/_live_rows.html", {"live": live}, seen=seen)
    return render(request, template, {**page, "live": live}, status=status)
