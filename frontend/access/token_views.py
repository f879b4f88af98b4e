"""Tokens: made, shown once, revoked. One's own; admins see and revoke everybody's."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from evalboard.contract.access import ApiToken
from frontend.access.forms import TokenForm
from frontend.shell.forms import blaming, posted_from
from frontend.shell.lists import read_view
from runs.access import (
    ADMIN,
    READ,
    TOKEN_ORDERS,
    create_token,
    may,
    requires,
    revoke_token,
    scopes_of,
    token_row,
    token_rows,
)

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
