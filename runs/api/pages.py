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
from runs.api import wire
from runs.store import RecordList

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
    place: Callable[[Any], int] = lambda row: int(row.id),
    show: Callable[[Row], Any] | None = None,
    digits: int = ID_DIGITS,
) -> Response:
    """Answer one page of a list.

    place: the sort number of a row, at most `digits` long, ascending or descending; default: its id.
    """
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
            "results": [wire.to_json(row, request) if show is None else show(row) for row in rows],
        }
    )


def answer_list(request: Request, listed: RecordList[Any], *, ordering: str) -> Response:
    """Answer one page of records: newest first by id, or by place in another order."""
    if ordering:
        return answer_with(request, listed.sort(ordering), make_rows=listed.make_rows)
    return answer(request, listed.rows)


def answer_with(request: Request, items: Any, *, make_rows: Callable[[Any], Sequence[Any]] = tuple) -> Response:
    """Answer one page of a sequence or of sorted records, by place.

    make_rows: returns the contracts of the page's items.
    """

    def fetch(*, after: int | None, before: int | None, limit: int) -> Sequence[tuple[int, Any]]:
        first = (0 if after is None else after + 1) if before is None else max(before - limit, 0)
        last = first + limit if before is None else before
        return list(enumerate(make_rows(items[first:last]), first))

    return answer(request, fetch, place=lambda pair: pair[0], show=lambda pair: wire.to_json(pair[1], request))


def _page_size(request: Request) -> int:
    text = request.query_params.get("page_size", str(PAGE_SIZE))
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= PAGE_SIZE_MAX):
        wrong = f"Must be a whole number from 1 to {PAGE_SIZE_MAX}."
        raise InvalidInput("The page cannot be given.", fields={"page_size": wrong})
    return int(text)


def _cursor(request: Request, digits: int) -> tuple[int | None, int | None]:
    """(after, before) of the cursor sent; at most one of them is given."""
    cursor = request.query_params.get("cursor")
    if cursor is None:
        return None, None
    try:
        text = base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    match = re.fullmatch(rf"([ab])([0-9]{{1,{digits}}})", text, re.ASCII)
    if match is None:
        raise InvalidInput("The page cannot be given.", fields={"cursor": "Take it from next or previous."})
    place = int(match[2])
    return (place, None) if match[1] == "a" else (None, place)


def _url(request: Request, direction: str, place: int) -> str:
    query = request.query_params.copy()
    query["cursor"] = base64.urlsafe_b64encode(f"{direction}{place}".encode()).decode().rstrip("=")
    return request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
