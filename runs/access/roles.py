"""Who may do what. Roles are Django groups; a token's scopes are the same four words.

Every view names the scope it needs with `requires`; a test walks the URLconf and refuses a
route without one.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.models import Group
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase

from runs.access.sessions import session_id

READ, RUN, SIGN, ADMIN = "read", "run", "sign", "admin"
SCOPES = (READ, RUN, SIGN, ADMIN)
ANYONE = "anyone"  # the policy of a route that needs no login
KEPT_SCOPES = "_evalboard_scopes"

ROLES: dict[str, frozenset[str]] = {
    "viewer": frozenset({READ}),
    "engineer": frozenset({READ, RUN}),
    "release manager": frozenset({READ, RUN, SIGN}),
    "admin": frozenset({READ, RUN, SIGN, ADMIN}),
}


def scopes_of(user: Any) -> frozenset[str]:
    """Return the scopes of a person's roles: none for someone not logged in, `read` for anyone who is.

    The roles are read once for each object of a person, and a request has one of its own.
    """
    if not user.is_authenticated or not user.is_active:
        return frozenset()
    if user.is_superuser:
        return ROLES["admin"]
    if not hasattr(user, KEPT_SCOPES):
        names = user.groups.values_list("name", flat=True)
        setattr(user, KEPT_SCOPES, frozenset({READ}).union(*(ROLES[name] for name in names if name in ROLES)))
    scopes: frozenset[str] = getattr(user, KEPT_SCOPES)
    return scopes


def may(user: Any, scope: str) -> bool:
    return scope == ANYONE or scope in scopes_of(user)


def grant_role(*, user: Any, role: str) -> None:
    """Give a person exactly one role; raises KeyError for a role that does not exist."""
    ROLES[role]
    group, _ = Group.objects.get_or_create(name=role)
    others = Group.objects.filter(name__in=ROLES).exclude(pk=group.pk)
    user.groups.remove(*others)
    user.groups.add(group)
    if user.is_superuser and role != "admin":
        user.is_superuser = False
        user.save(update_fields=["is_superuser"])
    if hasattr(user, KEPT_SCOPES):
        delattr(user, KEPT_SCOPES)


def credential(request: HttpRequest) -> str:
    """Describe a request's credential without revealing it: a token's label, or a session's digest."""
    token = getattr(request, "auth", None)
    if token is not None:
        return f"token {token.label} ({token.name})"
    return f"session {session_id(request.session.session_key or '')}"


View = Callable[..., HttpResponseBase]


def requires(scope: str, *, post: str | None = None) -> Callable[[View], View]:
    """State the scope a page needs, and another for POST where acting needs more than looking.

    Sends people who are not logged in to the login page; answers 403 to those who may not.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            needed = post if post is not None and request.method == "POST" else scope
            if may(request.user, needed):
                return view(request, *args, **kwargs)
            if not request.user.is_authenticated:
                answer = redirect_to_login(request.get_full_path())
                answer["Location"] += "&unsent=1" if request.method == "POST" else ""
                return answer
            raise PermissionDenied(f"This needs the {needed} right.")

        guarded.required_scope = scope  # type: ignore[attr-defined]
        guarded.required_scope_for_post = post  # type: ignore[attr-defined]
        return guarded

    return decorate
