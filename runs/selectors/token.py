"""Tokens as their page and the API list them: everything about each but its secret, which nobody has any more."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.utils import timezone

from runs.access import SCOPES
from runs.models import Token

State = Literal["active", "expired", "revoked"]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """`label` is the beginning of the token itself, which is no secret."""

    id: int
    label: str
    name: str
    person: str
    scopes: tuple[str, ...]
    state: State
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


def token_rows(user: Any = None) -> tuple[TokenRow, ...]:
    """The tokens of one person, or everybody's, newest first."""
    tokens = Token.objects.select_related("user").order_by("-id")
    return tuple(map(token_row, tokens if user is None else tokens.filter(user=user)))


def token_row(token: Token) -> TokenRow:
    return TokenRow(
        id=token.pk,
        label=token.label,
        name=token.name,
        person=token.user.get_username(),
        scopes=tuple(scope for scope in SCOPES if scope in token.scopes),
        state=_state(token),
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
        revoked_at=token.revoked_at,
    )


def _state(token: Token) -> State:
    if token.revoked_at is not None:
        return "revoked"
    return "active" if token.expires_at > timezone.now() else "expired"
