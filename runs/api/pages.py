"""Lists in pages, by an opaque cursor: `{"next", "previous", "results"}`.

A cursor names a row, not a count of rows, so that what arrives meanwhile neither repeats nor hides one.
"""

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.core.errors import InvalidInput

PAGE_SIZE, PAGE_SIZE_MAX = 50, 200
ID_DIGITS = 18
PARAMETERS = ("cursor", "page_size")

Row = TypeVar("Row")
FetchedRow = TypeVar("FetchedRow", covariant=True)


class Fetch(Protocol[FetchedRow]):
    """Up to `limit` rows in the list's order beyond `after`, or the nearest ones before `before`."""

    def __call__(self, *, after: int | None, before: int | None, limit: int) -> Sequence[FetchedRow]: ...


def answer(
    request: Request,
    fetch: Fetch[Row],
    *,
    place: Callable[[Row], int],
    show: Callable[[Row], Any],
    digits: int = ID_DIGITS,
) -> Response:
    """One page of a list. `place` is a row's own number, of at most `digits`, in the list's order or against it."""
    limit = _page_size(request)
    after, before = _cursor(request, digits)
    rows = list(fetch(after=after, before=before, limit=limit + 1))
    has_more = len(rows) > limit
    if before is not None:
        rows = rows[-limit:]
        has_next, has_previous = bool(rows), has_more
    else:
        rows = rows[:limit]
        has_next, has_previous = has_more, after is not None and bool(rows)
    return Response(
        {
            "next": _url(request, "a", place(rows[-1])) if has_next else None,
            "previous": _url(request, "b", place(rows[0])) if has_previous else None,
            "results": [show(row) for row in rows],
        }
    )


def answer_with(request: Request, rows: Sequence[Row], *, show: Callable[[Row], Any]) -> Response:
    """One page of a short list that is at hand as a whole."""
    numbered = list(enumerate(rows))

    def fetch(*, after: int | None, before: int | None, limit: int) -> Sequence[tuple[int, Row]]:
        return part_of(numbered, after=after, before=before, limit=limit)

    return answer(request, fetch, place=lambda pair: pair[0], show=lambda pair: show(pair[1]))


def part_of(rows: Sequence[Row], *, after: int | None, before: int | None, limit: int) -> Sequence[Row]:
    """What a page asks of rows whose places are their indexes."""
    if before is not None:
        return rows[max(before - limit, 0) : before]
    start = 0 if after is None else after + 1
    return rows[start : start + limit]


def _page_size(request: Request) -> int:
    asked = request.query_params.get("page_size", str(PAGE_SIZE))
    if not (asked.isascii() and asked.isdigit() and 1 <= int(asked[:9]) <= PAGE_SIZE_MAX):
        wrong = f"Must be a whole number from 1 to {PAGE_SIZE_MAX}."
        raise InvalidInput("The page cannot be given.", fields={"page_size": wrong})
    return int(asked)


def _cursor(request: Request, digits: int) -> tuple[int | None, int | None]:
    """(after, before) of the cursor sent; at most one of them is given."""
    asked = request.query_params.get("cursor")
    if asked is None:
        return None, None
    try:
        text = base64.b64decode(asked.encode() + b"=" * (-len(asked) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    found = re.fullmatch(rf"([ab])([0-9]{{1,{digits}}})", text, re.ASCII)
    if found is None:
        raise InvalidInput("The page cannot be given.", fields={"cursor": "Take it from `next` or `previous`."})
    place = int(found[2])
    return (place, None) if found[1] == "a" else (None, place)


def _url(request: Request, direction: str, place: int) -> str:
    query = request.query_params.copy()
    query["cursor"] = base64.urlsafe_b64encode(f"{direction}{place}".encode()).decode().rstrip("=")
    return request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
