"""Tokens: made here, shown once, kept as a digest."""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from evalboard.core.errors import InvalidInput
from runs.access import SCOPES
from runs.models import Token

PREFIX = "evb_"
LONGEST = timedelta(days=366)
NOTED_EVERY = timedelta(minutes=1)  # a write for each request would cost more than the request


def create_token(*, user: Any, name: str, scopes: Iterable[str], expires_at: datetime) -> tuple[Token, str]:
    """Make a token for a person; the secret is returned here and never again."""
    wanted = sorted(set(scopes))
    fields: dict[str, str] = {}
    if not wanted or not set(wanted) <= set(SCOPES):
        fields["scopes"] = f"One or more of: {', '.join(SCOPES)}."
    if not timezone.now() < expires_at <= timezone.now() + LONGEST:
        fields["expires_at"] = "Must lie within the next 366 days."
    if fields:
        raise InvalidInput("The token is not valid.", fields=fields)
    secret = PREFIX + secrets.token_urlsafe(32)
    token = Token.objects.create(
        user=user, name=name[:80], secret_digest=secret_digest(secret), scopes=wanted, expires_at=expires_at
    )
    return token, secret


def use_token(*, secret: str) -> Token | None:
    """The token of a secret, if it still holds and its person may sign in; notes its use at most once a minute."""
    digest = secret_digest(secret)
    now = timezone.now()
    token = Token.objects.select_related("user").filter(secret_digest=digest, expires_at__gt=now).first()
    if token is None or not token.user.is_active or not constant_time_compare(token.secret_digest, digest):
        return None
    noted = Q(last_used_at=None) | Q(last_used_at__lt=now - NOTED_EVERY)
    Token.objects.filter(noted, pk=token.pk).update(last_used_at=now)
    return token


def secret_digest(secret: str) -> str:
    """SHA-256 suffices: the secret is 256 random bits, so there is nothing to guess."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
