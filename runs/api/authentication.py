"""Who calls: a person with a session, or a program with a bearer token."""

from typing import Any

from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from evalboard.core.errors import Refused
from runs import services
from runs.models import Token


class BearerToken(BaseAuthentication):
    """`Authorization: Bearer evb_…`. Another scheme is left to the session."""

    def authenticate(self, request: Request) -> tuple[Any, Token] | None:
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.casefold() != "bearer":
            return None
        token = services.use_token(secret=secret.strip())
        if token is None:
            raise AuthenticationFailed("The token is not known, has expired, or its person may no longer sign in.")
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
