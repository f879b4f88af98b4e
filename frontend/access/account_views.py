"""Sign in by password or by the one-time link of `evalboard up`, and sign out, here or everywhere."""

import math
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib import auth, messages
from django.contrib.auth import authenticate, views
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from evalboard import oidc
from evalboard.core.errors import LinkSpent
from frontend.shell.forms import posted_from
from runs.access import ANYONE, READ, end_sessions, login_guard, requires, use_link

LINK_PARAMETER = "sesame"
BUSY_SECONDS = 5
REFUSED = {
    "name_here": f"{settings.AXES_FAILURE_LIMIT} wrong passwords were sent for this name from where you are.",
    "address": "Many wrong passwords were sent from where you are, for several names.",
    "name": "Many wrong passwords were tried for this name, so a wrong one makes you wait.",
    "all": "Many wrong passwords were tried, so a wrong one makes you wait.",
}


class PasswordLogin(views.LoginView):
    """The sign-in page. If a polling page is redirected here after its session ended, it reloads itself."""

    template_name = "access/login.html"
    redirect_authenticated_user = True
    extra_context = {"sso": settings.OIDC.name, "sso_provider": oidc.PROVIDER} if settings.OIDC else None

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with login_guard.turn_to_hash() as is_mine:
            if is_mine:
                return super().post(request, *args, **kwargs)
        login_guard.log_refusal(request, "busy")
        answer = render(request, "access/locked.html", {"is_busy": True}, status=429)
        answer["Retry-After"] = str(BUSY_SECONDS)
        return answer

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().dispatch(request, *args, **kwargs)
        if request.headers.get("HX-Request"):
            response["HX-Refresh"] = "true"
        return response


def locked(request: HttpRequest, response: HttpResponseBase, credentials: Mapping[str, Any] | None) -> HttpResponse:
    """Return the answer to a refused password; called by django-axes."""
    refusal = login_guard.find_refusal(request, str((credentials or {}).get("username", "")))
    code, until = (refusal.code, refusal.until) if refusal else ("name_here", timezone.now())
    login_guard.log_refusal(request, code)
    seconds = max(math.ceil((until - timezone.now()).total_seconds()), 1)
    page = {"until": until, "minutes": math.ceil(seconds / 60), "why": REFUSED[code]}
    answer = render(request, "access/locked.html", page, status=429)
    answer["Retry-After"] = str(seconds)
    return answer


login = requires(ANYONE)(PasswordLogin.as_view())
logout = requires(ANYONE)(posted_from("board")(views.LogoutView.as_view()))


@requires(ANYONE)
@require_http_methods(["GET", "HEAD", "POST"])
def signin(request: HttpRequest) -> HttpResponse:
    """Show a link that signs its person in once. Looking at it, as previews of links do, changes nothing."""
    secret = (request.POST if request.method == "POST" else request.GET).get(LINK_PARAMETER, "")
    person = authenticate(request, sesame=secret) if secret else None
    if person is None or (request.method == "POST" and not use_link(person=person)):
        raise LinkSpent(
            "This sign-in link was used already or is too old. Where Evalboard was started by make up, evalboard "
            "signin prints a new one; elsewhere an admin makes one with manage.py sign_in_link."
        )
    if request.method == "POST":
        auth.login(request, person)
        answer: HttpResponse = redirect(settings.LOGIN_REDIRECT_URL)
    else:
        answer = render(request, "access/signin.html", {"person": person, "secret": secret, "name": LINK_PARAMETER})
    answer["Cache-Control"] = "no-store"
    answer["Referrer-Policy"] = "strict-origin"  # without the path; with `no-referrer` the form had no origin to check
    return answer


@requires(READ)
@posted_from("board")
def logout_everywhere(request: HttpRequest) -> HttpResponse:
    n = end_sessions(person=request.user)
    auth.logout(request)
    messages.success(request, f"Signed out everywhere: {n} session{'' if n == 1 else 's'} ended.")
    return redirect(settings.LOGOUT_REDIRECT_URL)
