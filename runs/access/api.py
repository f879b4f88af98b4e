"""People, for admins. Tokens and sessions: one's own, and everybody's for admins."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.access import ApiToken, BrowserSession, NewApiToken, NewPerson, Person
from evalboard.contract.base import Page
from runs.access.people import change_role, invite_person, remove_person, write_link
from runs.access.read_people import PEOPLE_ORDERS, people_rows, person_row
from runs.access.read_tokens import TOKEN_ORDERS, token_row, token_rows
from runs.access.roles import ADMIN, READ, ROLES, SCOPES
from runs.access.sessions import end_session, session_rows
from runs.access.tokens import create_token, revoke_token
from runs.api import pages, query, wire
from runs.api.authentication import scopes_of, token_of
from runs.api.describe import describe
from runs.api.resource import Resource, resource, serve
from runs.api.serializers import Instant, Nothing, Strict, Text, read_body
from runs.store import sort_rows

ORDERING = query.ordering_of(TOKEN_ORDERS)


class TokenIn(Strict):
    name = Text()
    scopes = serializers.ListField(child=serializers.ChoiceField(SCOPES))
    expires_at = Instant()


@resource(GET=READ, POST=READ)
@describe("GET", "One's own tokens, or with `admin` everybody's", name="tokens", answer=Page[ApiToken], query=ORDERING)
@describe(
    "POST",
    "Make a token for oneself; its secret is shown this once",
    name="create_token",
    body=TokenIn,
    status=201,
    answer=NewApiToken,
)
def token_list(request: Request) -> Response:
    if request.method == "POST":
        token, secret = create_token(**read_body(TokenIn, request), user=request.user, by=token_of(request))
        return wire.answer(NewApiToken(**dict(token_row(token)), secret=secret), request, status=201)
    sent = query.read(request, ORDERING)
    rows = token_rows(None if ADMIN in scopes_of(request) else request.user)
    return pages.answer_with(request, sort_rows(rows, TOKEN_ORDERS, query.ordering(sent, TOKEN_ORDERS)))


@resource(DELETE=READ)
@describe("DELETE", "Revoke a token; it stays in the list", name="revoke_token", status=204)
def token_detail(request: Request, token_id: int) -> Response:
    query.read(request, is_paged=False)
    may_all = ADMIN in scopes_of(request)
    revoke_token(token_id=token_id, user=request.user, may_all=may_all, by=token_of(request))
    return Response(status=204)


class RoleIn(Strict):
    role = serializers.ChoiceField(list(ROLES))


class PersonIn(RoleIn):
    name = Text()


def _invited(person: Any) -> NewPerson:
    return _linked(person.get_username())


def _linked(name: str, by: Any = None) -> NewPerson:
    return NewPerson(**dict(person_row(name)), link=write_link(name=name, by=by))


PERSON = Resource("person", Person, person_row, reads=ADMIN, changes=ADMIN, sent_by="by")

people_list = serve(
    PERSON.listed("people", "People, with their role and when they were last seen", Person, people_rows, PEOPLE_ORDERS),
    PERSON.made(
        "Add a person; the link that signs them in once is shown only here",
        PersonIn,
        invite_person,
        show=_invited,
        by="",
        answer=NewPerson,
        is_located=False,
        refuses=[409],
    ),
)
person_detail = serve(
    PERSON.one("A person"),
    PERSON.deleted(
        "End a person's access: sessions, tokens, password. What they did stays", remove_person, refuses=[409]
    ),
)
role = serve(PERSON.acted("change_role", "Give a person another role", change_role, body=RoleIn, refuses=[409]))


@resource(POST=ADMIN)
@describe(
    "POST",
    "Make a link that signs a person in once, within a day",
    name="create_sign_in_link",
    body=Nothing,
    status=201,
    answer=NewPerson,
)
def link(request: Request, name: str) -> Response:
    read_body(Nothing, request)
    return wire.answer(_linked(name, token_of(request)), request, status=201)


@resource(GET=READ)
@describe("GET", "One's own sessions, or with `admin` everybody's", name="sessions", answer=Page[BrowserSession])
def session_list(request: Request) -> Response:
    query.read(request)
    return pages.answer_with(request, session_rows(None if ADMIN in scopes_of(request) else request.user))


@resource(DELETE=READ)
@describe("DELETE", "End a session: its browser is signed out", name="end_session", status=204)
def session_detail(request: Request, session: str) -> Response:
    query.read(request, is_paged=False)
    end_session(session_id=session, user=request.user, may_all=ADMIN in scopes_of(request))
    return Response(status=204)
