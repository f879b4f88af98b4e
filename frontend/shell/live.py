"""Parts of a page that follow what changes: an open page asks for one again, and is sent it where it looks other."""

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
    """A list as it is drawn, the address that an open page asks for it again, and every how many seconds."""

    html: SafeString
    url: str
    seconds: int


def digest_of(shown: str) -> str:
    """Return what an open page names for what it shows, in 12 letters or so."""
    return short_digest(shown.encode()).hex()


def answer_part(request: HttpRequest, template: str, page: Mapping[str, Any], *, seen: str) -> HttpResponse:
    """Return a part drawn anew, or 204 where the page that asks shows just that; seen: the digest of what it is now."""
    answer = HttpResponse(status=204) if request.GET.get("seen") == seen else render(request, template, page)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def answer_list(
    request: HttpRequest, template: str, rows: str, page: Mapping[str, Any], *, is_moving: bool, status: int = 200
) -> HttpResponse:
    """Return the page of a list whose rows follow what changes, or those rows alone where an open page asks for them.

    rows: the template of the rows, drawn from `page` and nothing else; `page` has them as `live` beside it.
    is_moving: whether one of them is at work, which makes the page ask more often.
    """
    html = render_to_string(rows, dict(page))
    seen = digest_of(html)
    query = request.GET.copy()
    query["part"], query["seen"] = ROWS, seen
    live = LiveRows(html, f"{request.path}?{query.urlencode()}", MOVING_SECONDS if is_moving else RESTING_SECONDS)
    if request.method == "GET" and request.GET.get("part") == ROWS:
        return answer_part(request, "shell/_live_rows.html", {"live": live}, seen=seen)
    return render(request, template, {**page, "live": live}, status=status)
