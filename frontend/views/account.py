"""Signing in, by password or by the one-time link that `evalboard up` prints, and out."""

import math
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import views
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from sesame.views import LoginView as LinkView

from evalboard import oidc
from runs.access import ANYONE, requires
from runs.login_guard import locked_until


class PasswordLogin(views.LoginView):
    """A page that polls meets this one when its session has ended: it is then told to load itself anew."""

    template_name = "frontend/login.html"
    redirect_authenticated_user = True
    extra_context = {"sso": settings.OIDC.name, "sso_provider": oidc.PROVIDER} if settings.OIDC else None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        if request.headers.get("HX-Request"):
            response["HX-Refresh"] = "true"
        return response


def locked(request: HttpRequest, response: HttpResponseBase, credentials: Mapping[str, Any] | None) -> HttpResponse:
    """What is answered to a password while its name is locked; django-axes calls it."""
    until = locked_until(request, str((credentials or {}).get("username", ""))) or timezone.now()
    seconds = max(math.ceil((until - timezone.now()).total_seconds()), 1)
    page = {"until": until, "minutes": math.ceil(seconds / 60), "limit": settings.AXES_FAILURE_LIMIT}
    answer = render(request, "frontend/locked.html", page, status=429)
    answer["Retry-After"] = str(seconds)
    return answer


login = requires(ANYONE)(PasswordLogin.as_view())
logout = requires(ANYONE)(views.LogoutView.as_view())


class OneTimeLink(LinkView):  # type: ignore[misc]  # sesame has no types
    """A link that signs its person in once; a used or old one says so."""

    http_method_names = ["get"]

    def dispatch(self, *args: Any, **kwargs: Any) -> Any:
        response = super().dispatch(*args, **kwargs)
        response["Cache-Control"] = "no-store"
        response["Referrer-Policy"] = "no-referrer"
        return response

    def login_failed(self) -> HttpResponse:
        raise PermissionDenied(
            "This sign-in link was used already or is too old. "
            "`make up` prints a new one at each start, and an admin makes one with `manage.py add_person`."
        )


signin = requires(ANYONE)(OneTimeLink.as_view())
