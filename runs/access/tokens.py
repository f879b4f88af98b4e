"""Tokens: shown once, stored as a digest, revoked but not deleted while their person may sign in.

`evb_<8 digits>_<43 characters>_<6 characters>`: the name of the token, its secret of 256 random bits, and a checksum by
which a scanner of logs and repositories tells a token from what only looks like one. The name is the beginning of the
digest that is stored, so that a token found somewhere can be found in the list and revoked.
"""

import hashlib
import re
import secrets
import string
import zlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from evalboard.core.errors import InvalidInput, Refused
from runs.access import roles
from runs.access.roles import SCOPES
from runs.models import Token
from runs.models.access import token_label
from runs.store import require_row, storable

DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
N_SECRET, N_CHECKSUM = 43, 6  # 62**43 is above 2**256, and 62**6 above 2**32
FORM = re.compile(rf"evb_[0-9a-f]{{8}}_([0-9A-Za-z]{{{N_SECRET}}})_[0-9A-Za-z]{{{N_CHECKSUM}}}")
LONGEST = timedelta(days=366)
LONGEST_NAME = 80
NOTED_EVERY = timedelta(minutes=1)  # a write for each request would cost more than the request


def create_token(
    *, user: Any, name: str, scopes: Iterable[str], expires_at: datetime, by: Token | None = None
) -> tuple[Token, str]:
    """Make a token for a person; the secret is returned here and never again.

    It never may do more than its person may now: a scope that slept until they are promoted would be given by nobody.
    `by` is the token that asked for it, if one did: what it makes may do no more and hold no longer than itself, or a
    leaked one could be made to last. Raises InvalidInput with fields, or Refused.
    """
    wanted = sorted(set(scopes))
    fields: dict[str, str] = {}
    if not name.strip() or len(name) > LONGEST_NAME or storable(name) != name:
        fields["name"] = f"Say what it is for, in at most {LONGEST_NAME} characters."
    if not wanted or not set(wanted) <= set(SCOPES):
        fields["scopes"] = f"One or more of: {', '.join(SCOPES)}."
    elif not set(wanted) <= (allowed := roles.scopes_of(user)):
        theirs = ", ".join(scope for scope in SCOPES if scope in allowed)
        fields["scopes"] = f"Only what {user.get_username()} may do now: {theirs or 'nothing'}."
    if not timezone.now() < expires_at <= timezone.now() + LONGEST:
        fields["expires_at"] = "Must lie within the next 366 days."
    if fields:
        raise InvalidInput("The token is not valid.", fields=fields)
    if by is not None and not (set(wanted) <= set(by.scopes) and expires_at <= by.expires_at):
        raise Refused("A new token cannot have more rights or last longer than the token that creates it.")
    secret = _new_secret()
    token = Token.objects.create(
        user=user, name=name, secret_digest=secret_digest(secret), scopes=wanted, expires_at=expires_at
    )
    return token, secret


def revoke_token(*, token_id: int, user: Any, may_all: bool = False, by: Token | None = None) -> Token:
    """End a token now; it stays in the list. Revoking it again changes nothing.

    A person revokes their own, whoever `may_all` anybody's. A token (`by`) revokes itself and those that may do no more
    than it. Raises NotFound, also where it is somebody else's, or Refused.
    """
    own = Q() if may_all else Q(user=user)
    token = require_row(Token.objects.filter(own, pk=token_id), f"There is no token {token_id}.")
    if by is not None and not set(token.scopes) <= set(by.scopes):
        raise Refused("A token revokes itself, and tokens that may do no more than itself.")
    Token.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=Now())
    token.refresh_from_db()
    return token


def use_token(*, secret: str) -> Token | None:
    """Return the token of a secret if it is valid and its person may sign in, else None.

    Note its use at most once a minute.
    """
    digest = secret_digest(secret)
    now = timezone.now()
    known = Token.objects.select_related("user")
    token = known.filter(secret_digest=digest, revoked_at=None, expires_at__gt=now).first()
    if token is None or not token.user.is_active or not constant_time_compare(token.secret_digest, digest):
        return None
    if token.last_used_at is None or token.last_used_at < now - NOTED_EVERY:
        Token.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def secret_digest(secret: str) -> str:
    """Return what is stored of a token: SHA-256, which is enough for 256 random bits.

    Of a token in the form above its random part alone, since its name comes out of this; of one made before that
    form was, all of it.
    """
    match = FORM.fullmatch(secret)
    if match is not None and secret == _dressed(match[1]):
        return _sha256(match[1])
    return _sha256(secret)


def _new_secret() -> str:
    return _dressed("".join(secrets.choice(DIGITS) for _ in range(N_SECRET)))


def _dressed(random_part: str) -> str:
    """A token of its random part, with its name before and its checksum after it."""
    body = f"{token_label(_sha256(random_part))}_{random_part}"
    checksum, digits = zlib.crc32(body.encode()), ""
    for _ in range(N_CHECKSUM):
        checksum, digit = divmod(checksum, len(DIGITS))
        digits = DIGITS[digit] + digits
    return f"{body}_{digits}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
