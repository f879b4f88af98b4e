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
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from evalboard import oidc
from evalboard.contract.access import ApiToken
from evalboard.core.errors import LinkSpent
from evalboard.wording.messages import Messages
from frontend.access.forms import TokenForm
from frontend.shell.forms import blaming, posted_from
from frontend.shell.lists import read_view
from runs.access import (
    ADMIN,
    ANYONE,
    READ,
    TOKEN_ORDERS,
    create_token,
    end_sessions,
    login_guard,
    may,
    requires,
    revoke_token,
    scopes_of,
    token_row,
    token_rows,
    use_link,
)

LINK_PARAMETER = "sesame"
BUSY_SECONDS = 5
REFUSED = Messages(
    "sign_in",
    {
        ("password", "denies"): {
            "name_here": "{n:wrong password} for this name came from your address.",
            "address": "Many wrong passwords came from your address, for several names.",
            "name": "Many wrong passwords were tried for this name, so a wrong one makes you wait.",
            "all": "Many wrong passwords were tried, so a wrong one makes you wait.",
        },
    },
)


class PasswordLogin(views.LoginView):
    """The sign-in page. If a polling page is redirected here after its session ended, it reloads itself."""

    template_name = "access/login.html"
    redirect_authenticated_user = True
    extra_context = {"sso": settings.OIDC.name, "sso_provider": oidc.PROVIDER} if settings.OIDC else None

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(is_unsent="unsent" in self.request.GET, **kwargs)

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
    page = {
        "until": until,
        "minutes": math.ceil(seconds / 60),
        "why": REFUSED.write(code, n=settings.AXES_FAILURE_LIMIT),
    }
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


TOKENS_PER_PAGE = 100


@requires(READ)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    scopes = scopes_of(request.user)
    if request.method != "POST":
        return _page(request, TokenForm(scopes=scopes))
    form = TokenForm(request.POST, scopes=scopes)
    if form.is_valid():
        wanted = {name: form.cleaned_data[name] for name in ("name", "scopes")}
        with blaming(form, names={"expires_at": "days"}):
            token, secret = create_token(user=request.user, expires_at=form.expires_at(), **wanted)
            return _page(request, TokenForm(scopes=scopes), made=token_row(token), secret=secret)
    form.mark_problems()
    return _page(request, form)


@requires(READ)
@posted_from("tokens")
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    token = revoke_token(token_id=token_id, user=request.user, may_all=may(request.user, ADMIN))
    messages.success(request, f"Token {token.name} was revoked; requests with it are refused from now on.")
    return redirect("tokens")


def _page(request: HttpRequest, form: TokenForm, *, made: ApiToken | None = None, secret: str = "") -> HttpResponse:
    """Return the list with the form.

    `secret` is shown only in this answer, so reloading does not show it again.
    """
    sees_all = may(request.user, ADMIN)
    rows = token_rows(None if sees_all else request.user)
    query = request.GET if request.method != "POST" else {}
    view = read_view(query, orders=TOKEN_ORDERS, default="-created_at", size=TOKENS_PER_PAGE)
    shown = view.slice([row for row in rows if row.state == "active"])
    page = {
        "form": form,
        "made": made,
        "secret": secret,
        "ended": [row for row in rows if row.state != "active"],
        "list": shown,
        "sees_all": sees_all,
    }
    status = 422 if form.errors else 201 if made else 200
    return render(request, "access/tokens.html", page, status=status)
