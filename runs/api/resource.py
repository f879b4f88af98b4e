"""How a function or a `Resource` becomes an API view, which states a scope for each of its methods."""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.urls import reverse
from django.utils.cache import patch_cache_control
from rest_framework.decorators import api_view, authentication_classes
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Contract, Page
from runs.access import roles
from runs.api import etags, pages, query, wire
from runs.api.authentication import token_of
from runs.api.describe import JSON, Json, StatusAnswer, View, describe
from runs.api.serializers import Body, Nothing, read_body
from runs.store import Orders, RecordList, sort_rows


def resource(**scopes: str) -> Callable[[View], View]:
    """Make an API view of a function: one scope for each HTTP method that it answers, `GET="read"`.

    The answer carries `required_scope`, the attribute that every route must have, and `required_scopes`.
    """

    def decorate(function: View) -> View:
        view: Any = _kept_by_nobody_else(api_view(list(scopes))(function))
        view.cls.required_scopes = scopes
        view.cls.described = getattr(function, "described", {})  # for the schema: describe.py
        view.required_scopes = scopes
        view.required_scope = scopes.get("GET", next(iter(scopes.values())))
        return view  # type: ignore[no-any-return]

    return decorate


def _kept_by_nobody_else(view: View) -> View:
    """Forbid caches to store a view's answer: what one person may read must not be served to another.

    A client that sends an ETag back has kept the answer itself (etags.py).
    """

    @wraps(view)
    def answered(*args: Any, **kwargs: Any) -> Any:
        response = view(*args, **kwargs)
        patch_cache_control(response, private=True, no_store=True)
        return response

    return answered


def open_to_anyone(*methods: str) -> Callable[[View], View]:
    """Make an API view without authentication, so that it answers while the database is down."""

    def decorate(function: View) -> View:
        return resource(**dict.fromkeys(methods, roles.ANYONE))(authentication_classes([])(function))

    return decorate


@dataclass(frozen=True, slots=True)
class ApiMethod:
    """One method of a view: its scope, its description (the arguments of `describe`), and what answers."""

    method: str
    scope: str
    about: Mapping[str, Any]
    answer: View


def serve(*acts: ApiMethod) -> View:
    """Make an API view of acts, one for each method."""
    by_method = {act.method: act for act in acts}

    def view(request: Request, **place: Any) -> Any:
        return by_method["GET" if request.method == "HEAD" else str(request.method)].answer(request, **place)

    view.__module__ = sys._getframe(1).f_globals["__name__"]  # its feature, as of a view written out
    for act in acts:
        describe(act.method, **act.about)(view)
    return resource(**{act.method: act.scope for act in acts})(view)


def get(name: str, summary: str, answer: type[Contract], read: Callable[..., Contract], **about: Any) -> ApiMethod:
    """Answer GET with what `read` returns for the names in the address and the values of `query`."""

    def answered(request: Request, **place: Any) -> Response:
        sent = query.read_values(request, about.get("query", {}), is_paged=False)
        return wire.answer(read(*place.values(), **sent), request)

    return ApiMethod("GET", roles.READ, {"name": name, "summary": summary, "answer": answer, **about}, answered)


@dataclass(frozen=True, slots=True)
class Resource:
    """What people make over REST: its noun, its contract, and how one is read.

    noun: also the name of its address, whose parts `read` takes. state: what its tag stands for (etags.py). owner: the
    argument by which functions get the caller, where rows belong to people. sent_by: that by which what makes or acts
    gets the token that was sent, or None. changes: the scope of all that writes.
    takes_record: `read` takes the record that a function returned.
    """

    noun: str
    contract: type[Contract]
    read: Callable[..., Contract]
    state: Callable[..., str] | None = None
    reads: str = roles.READ
    changes: str = roles.RUN
    owner: str = ""
    sent_by: str = ""
    takes_record: bool = False

    def listed(
        self,
        name: str,
        summary: str,
        row: type[Contract],
        rows: Callable[..., Any],
        orders: Orders | None = None,
        filters: Mapping[str, Json] | None = None,
        refuses: Iterable[int] = (),
    ) -> ApiMethod:
        """List rows: `rows` returns, for the filters, records, a sequence, or a function that fetches a page."""
        page: Any = Page  # of a contract that is known here alone
        known = {**(filters or {}), **(query.ordering_of(orders) if orders else {})}

        def answer(request: Request, **place: Any) -> Response:
            sent = query.read_values(request, known)
            ordering = sent.pop("ordering", "")
            listed = rows(*place.values(), **sent, **self._caller(request))
            if isinstance(listed, RecordList):
                return pages.answer_list(request, listed, ordering=ordering)
            if callable(listed):
                return pages.answer(request, listed)
            return pages.answer_with(request, sort_rows(listed, orders, ordering) if orders else listed)

        about = {"name": name, "summary": summary, "answer": page[row], "query": known, "refuses": refuses}
        return ApiMethod("GET", self.reads, about, answer)

    def one(self, summary: str, name: str = "") -> ApiMethod:
        """Answer GET with one row, or with 304 where it has a state."""
        about = {"name": name or self.noun, "summary": summary, "answer": self.contract}

        def answer(request: Request, **place: Any) -> Response:
            query.read(request, is_paged=False)
            if self.state is None:
                return wire.answer(self.read(*place.values(), **self._caller(request)), request)
            tag = self.state(*place.values())
            return etags.answer(request, tag, lambda: wire.to_json(self.read(*place.values()), request))

        return ApiMethod("GET", self.reads, {**about, **(etags.DESCRIBED if self.state else {})}, answer)

    def made(
        self,
        summary: str,
        body: Body,
        make: Callable[..., Any],
        *,
        name: str = "",
        again: str = "",
        show: Callable[[Any], Contract] | None = None,
        is_located: bool = True,
        by: str | None = None,
        **about: Any,
    ) -> ApiMethod:
        """Make a row of a body with POST, answered with 201.

        again: what the answer 200 means, where `make` also returns whether the row is new. show: the answer for what
        `make` returned; default: the row of that id. by: the argument by which `make` gets the caller, "" for
        none; default: `owner`, or "user".
        """
        if is_located:
            about.setdefault("gives_headers", {"Location": f"the {self.noun}"})
        if again:
            about["also"] = {200: StatusAnswer(again, {JSON: self.contract})}

        def answer(request: Request, **place: Any) -> Response:
            caller = (self.owner or "user") if by is None else by
            sender = {caller: request.user} if caller else {}
            made = make(**place, **read_body(body, request), **sender, **self._token(request))
            made, is_new = made if again else (made, True)
            value = (show or self.read)(made if show or self.takes_record else made.pk)
            headers = {}
            if is_located and is_new:
                headers["Location"] = request.build_absolute_uri(reverse(f"api:{self.noun}", args=[made.pk]))
            return wire.answer(value, request, status=201 if is_new else 200, headers=headers)

        bodies = tuple(body.values()) if isinstance(body, Mapping) else body
        named = {"name": name or f"create_{self.noun}", "summary": summary, "body": bodies, "status": 201}
        return ApiMethod("POST", self.changes, {"answer": self.contract, **named, **about}, answer)

    def acted(
        self,
        name: str,
        summary: str,
        act: Callable[..., Any],
        *,
        body: Body = Nothing,
        status: int = 200,
        refuses: Iterable[int] = (),
    ) -> ApiMethod:
        """Change one row with POST, and answer with it."""

        def answer(request: Request, **place: Any) -> Response:
            changed = act(**place, **read_body(body, request), **self._token(request))
            value = self.read(changed) if self.takes_record else self.read(*place.values())
            return wire.answer(value, request, status=status)

        about = {"name": name, "summary": summary, "body": body, "answer": self.contract}
        return ApiMethod("POST", self.changes, {**about, "status": status, "refuses": refuses}, answer)

    def deleted(
        self, summary: str, delete: Callable[..., Any], *, name: str = "", by: str = "", refuses: Iterable[int] = ()
    ) -> ApiMethod:
        """Delete one row with DELETE. by: the argument by which `delete` gets the caller; default: `owner`."""
        about = {"name": name or f"delete_{self.noun}", "summary": summary, "status": 204, "refuses": refuses}

        def answer(request: Request, **place: Any) -> Response:
            query.read(request, is_paged=False)
            delete(**place, **({by: request.user} if by else self._caller(request)))
            return Response(status=204)

        return ApiMethod("DELETE", self.changes, about, answer)

    def _token(self, request: Request) -> dict[str, Any]:
        return {self.sent_by: token_of(request)} if self.sent_by else {}

    def _caller(self, request: Request) -> dict[str, Any]:
        return {self.owner: request.user} if self.owner else {}
