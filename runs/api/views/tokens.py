"""Tokens: one's own; admins see and revoke everybody's."""

from rest_framework.request import Request
from rest_framework.response import Response

from runs import services
from runs.access import ADMIN, READ
from runs.api import pages, query
from runs.api.access import resource
from runs.api.access_answers import ApiToken
from runs.api.answers import Page
from runs.api.describe import describe
from runs.api.permissions import scopes_of
from runs.api.serializers import TokenIn
from runs.api.shapes import instant
from runs.models import Token
from runs.selectors.token import TokenRow, token_row, token_rows


@resource(GET=READ, POST=READ)
@describe("GET", "One's own tokens, or with `admin` everybody's", name="tokens", answer=Page[ApiToken], is_paged=True)
@describe(
    "POST",
    "Make a token for oneself; its secret is shown this once",
    name="create_token",
    body=TokenIn,
    status=201,
    answer=ApiToken,
)
def token_list(request: Request) -> Response:
    if request.method == "POST":
        return _create(request)
    query.read(request)
    rows = token_rows(None if ADMIN in scopes_of(request) else request.user)
    return pages.answer_with(request, rows, show=_shape)


def _create(request: Request) -> Response:
    query.read(request, is_paged=False)
    body = TokenIn(data=request.data)
    body.is_valid(raise_exception=True)
    token, secret = services.create_token(**body.validated_data, user=request.user, by=_asking(request))
    return Response({**_shape(token_row(token)), "secret": secret}, status=201)


@resource(DELETE=READ)
@describe("DELETE", "Revoke a token; it stays in the list", name="revoke_token", status=204)
def token_detail(request: Request, token_id: int) -> Response:
    query.read(request, is_paged=False)
    may_all = ADMIN in scopes_of(request)
    services.revoke_token(token_id=token_id, user=request.user, may_all=may_all, by=_asking(request))
    return Response(status=204)


def _asking(request: Request) -> Token | None:
    """The token that came with the request; None where a person is signed in."""
    return request.auth if isinstance(request.auth, Token) else None


def _shape(row: TokenRow) -> ApiToken:
    return {
        "id": str(row.id),
        "label": row.label,
        "name": row.name,
        "person": row.person,
        "scopes": list(row.scopes),
        "state": row.state,
        "created_at": instant(row.created_at),
        "expires_at": instant(row.expires_at),
        "last_used_at": instant(row.last_used_at),
        "revoked_at": instant(row.revoked_at),
    }
