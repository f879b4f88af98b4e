"""Tokens: one's own; admins see and revoke everybody's."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.access import ApiToken, NewApiToken
from evalboard.contract.base import Page
from runs.access.read_tokens import TOKEN_ORDERS, token_row, token_rows
from runs.access.roles import ADMIN, READ, SCOPES
from runs.access.tokens import create_token, revoke_token
from runs.api import pages, query, wire
from runs.api.authentication import scopes_of
from runs.api.describe import describe
from runs.api.resource import resource
from runs.api.serializers import Instant, Strict, Text, read_body
from runs.models import Token
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
        token, secret = create_token(**read_body(TokenIn, request), user=request.user, by=_asking(request))
        return wire.answer(NewApiToken(**dict(token_row(token)), secret=secret), request, status=201)
    sent = query.read(request, ORDERING)
    rows = token_rows(None if ADMIN in scopes_of(request) else request.user)
    return pages.answer_with(request, sort_rows(rows, TOKEN_ORDERS, query.ordering(sent, TOKEN_ORDERS)))


@resource(DELETE=READ)
@describe("DELETE", "Revoke a token; it stays in the list", name="revoke_token", status=204)
def token_detail(request: Request, token_id: int) -> Response:
    query.read(request, is_paged=False)
    may_all = ADMIN in scopes_of(request)
    revoke_token(token_id=token_id, user=request.user, may_all=may_all, by=_asking(request))
    return Response(status=204)


def _asking(request: Request) -> Token | None:
    """The token that came with the request; None where a person is signed in."""
    return request.auth if isinstance(request.auth, Token) else None
