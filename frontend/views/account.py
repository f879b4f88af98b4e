"""Signing in, by password or by the one-time link that `evalboard up` prints, and out."""

from typing import Any

from django.contrib.auth import views
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from sesame.views import LoginView as LinkView

from runs.access import ANYONE, requires


class PasswordLogin(views.LoginView):
    """A page that polls meets this one when its session has ended: it is then told to load itself anew."""

    template_name = "frontend/login.html"
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        if request.headers.get("HX-Request"):
            response["HX-Refresh"] = "true"
        return response


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
        raise PermissionDenied("This sign-in link was used already or is too old. Restart the server for a new one.")


signin = requires(ANYONE)(OneTimeLink.as_view())
