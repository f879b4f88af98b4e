"""Tokens as listed on their page and by the API: everything but the secret, which is not stored."""

from typing import Any

from django.utils import timezone

from evalboard.contract.access import ApiToken
from runs.access.roles import SCOPES
from runs.models import Token

TOKEN_ORDERS = {name: name for name in ("created_at", "name", "person", "last_used_at", "expires_at")}


def token_rows(user: Any = None) -> tuple[ApiToken, ...]:
    """Return the tokens of one person, or of all, newest first."""
    tokens = Token.objects.select_related("user").order_by("-id")
    return tuple(map(token_row, tokens if user is None else tokens.filter(user=user)))


def token_row(token: Token) -> ApiToken:
    return ApiToken.from_record(
        token,
        id=str(token.pk),
        person=token.user.get_username(),
        scopes=tuple(scope for scope in SCOPES if scope in token.scopes),
        state=_state(token),
    )


def _state(token: Token) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "active" if token.expires_at > timezone.now() else "expired"
