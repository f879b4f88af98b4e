"""Who calls, and what they may: a person with a session, or a program with a bearer token.

Apart from access.py, because the framework loads this before its own views.
"""

from typing import Any

from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from evalboard.core.errors import Refused
from runs.access import roles, use_token
from runs.models import Token


class BearerToken(BaseAuthentication):
    """`Authorization: Bearer evb_…`. Another scheme is left to the session."""

    def authenticate(self, request: Request) -> tuple[Any, Token] | None:
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.casefold() != "bearer":
            return None
        token = use_token(secret=secret.strip())
        if token is None:
            raise AuthenticationFailed("The token is unknown or expired, or its owner may no longer sign in.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="evalboard"'


class CsrfFailed(Refused):
    code = "csrf_failed"
    title = "The request could not be trusted"


class Session(SessionAuthentication):
    """The pages' own login. Whatever writes must carry the CSRF token; a bearer token needs none."""

    def enforce_csrf(self, request: Request) -> None:
        try:
            super().enforce_csrf(request)
        except PermissionDenied as denied:
            raise CsrfFailed("Send the CSRF token in the header X-CSRFToken, or use a bearer token.") from denied


def scopes_of(request: Request) -> frozenset[str]:
    """Return what the caller may do: a person's roles, cut down to the token's scopes where one was sent."""
    scopes = roles.scopes_of(request.user)
    if isinstance(request.auth, Token):
        return scopes & frozenset(request.auth.scopes)
    return scopes


def token_of(request: Request) -> Token | None:
    """Return the token that came with the request; None where a person is signed in."""
    return request.auth if isinstance(request.auth, Token) else None


class RoleOrScope(BasePermission):
    """Permits callers who have the scope that the view states for the method. No scope: no access."""

    def has_permission(self, request: Request, view: Any) -> bool:
        stated: dict[str, str] = getattr(view, "required_scopes", {})
        method = "GET" if request.method == "HEAD" else str(request.method)
        if stated and method not in stated:
            return True  # no handler can run: the answer will be 405
        needed = stated.get(method)
        self.message = f"This needs the scope {needed}, which your roles or this token's scopes do not include."
        return needed is not None and (needed == roles.ANYONE or needed in scopes_of(request))
