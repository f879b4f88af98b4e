"""Describe a view's input and answers for the OpenAPI schema; `make check` requires it of routes.

    @resource(GET=READ, POST=RUN)
    @describe("GET", "Runs, newest first", answer=Page[RunRow], query=FILTERS)
    @describe("POST", "Start a run", body=RunIn, answer=Run, status=201, refuses=(404, 409))
    def run_list(request): ...

Scopes come from `resource`, path parameters from the address, bodies from the serializers that check them, and query
parameters are the very table that `query.read` reads the names of. Answers are contracts. `python tools/openapi.py
--write` writes docs/openapi.yaml anew.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalboard.contract.base import Page

View = Callable[..., Any]
Json = dict[str, Any]

JSON = "application/json"
MAX_NUMBER = 10**18 - 1  # query.MAX_ID_DIGITS nines

TEXT: Json = {"type": "string"}
WHOLE: Json = {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER}


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """A status: its meaning, its bodies by media type (None: no body), and its headers by name."""

    text: str
    bodies: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One method of a route. `body` maps media types to a serializer, a type or a schema."""

    name: str
    summary: str
    answers: Mapping[int, StatusAnswer]
    query: Mapping[str, Json]
    headers: Mapping[str, Json]
    body: Mapping[str, Any]
    is_paged: bool
    refuses: tuple[int, ...]


def describe(
    method: str,
    summary: str,
    *,
    name: str,
    answer: Any = None,
    status: int = 200,
    also: Mapping[int, StatusAnswer] | None = None,
    query: Mapping[str, Json] | None = None,
    takes_headers: Mapping[str, Json] | None = None,
    gives_headers: Mapping[str, str] | None = None,
    body: Any = None,
    refuses: Iterable[int] = (),
) -> Callable[[View], View]:
    """Describe one method of a view. Write it below `resource`, once for each method.

    name: the operation's, unique among all; clients generated from the schema use it. answer: a type or a schema, or a
    dictionary of these by media type; None: no body. also: other statuses that are no failure. refuses: statuses of
    failures beyond the implied ones (400, 401, 403, 404 for an address that names something, 429).
    """
    call = ApiCall(
        name=name,
        summary=summary,
        answers={status: StatusAnswer(summary, _by_media(answer), gives_headers or {}), **(also or {})},
        query=query or {},
        headers=takes_headers or {},
        body=_by_media(body),
        is_paged=isinstance(answer, type) and issubclass(answer, Page),
        refuses=tuple(refuses),
    )

    def decorate(view: View) -> View:
        known = getattr(view, "described", {})
        view.described = {**known, method: call}  # type: ignore[attr-defined]
        return view

    return decorate


def one_of(words: Iterable[str], text: str = "") -> Json:
    """Return a query parameter that is one of some words."""
    return {"type": "string", "enum": list(words), **({"description": text} if text else {})}


def keyed(header: str) -> dict[str, Any]:
    """Return the header by which the same request is known."""
    return {header: text("the same request sent again makes no second run or pair", pattern="^[!-~]{1,255}$")}


def text(about: str, pattern: str = "") -> Json:
    return {**TEXT, "description": about, **({"pattern": pattern} if pattern else {})}


def whole(about: str) -> Json:
    return {**WHOLE, "description": about}


def _by_media(body: Any) -> Mapping[str, Any]:
    if body is None:
        return {}
    if isinstance(body, dict) and all("/" in name for name in body):
        return body
    return {JSON: body}
