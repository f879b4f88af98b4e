"""Who may call what. Apart from access.py, because the framework loads this before its own views."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from runs import access
from runs.models import Token


def scopes_of(request: Request) -> frozenset[str]:
    """What the caller may do: a person's roles, cut down to the token's scopes where one was sent."""
    scopes = access.scopes_of(request.user)
    if isinstance(request.auth, Token):
        return scopes & frozenset(request.auth.scopes)
    return scopes


class RoleOrScope(BasePermission):
    """Lets a caller in who has the scope that the view states for the method; a view that states none is shut."""

    def has_permission(self, request: Request, view: Any) -> bool:
        stated: dict[str, str] = getattr(view, "required_scopes", {})
        method = "GET" if request.method == "HEAD" else str(request.method)
        if stated and method not in stated:
            return True  # no handler can run: the answer will be 405
        needed = stated.get(method)
        self.message = f"This needs the scope {needed}, which your roles or this token's scopes do not include."
        return needed is not None and (needed == access.ANYONE or needed in scopes_of(request))
