"""Webhooks: which events they get, and whether they arrive."""

from collections.abc import Callable
from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from frontend.access.forms import WebhookForm
from frontend.shell.forms import blaming, posted_from, reporting
from frontend.shell.lists import read_view
from runs import webhooks as webhooks_slice
from runs.access import ADMIN, requires
from runs.models import WebhookRecord
from runs.webhooks import OFF_AFTER, WEBHOOK_ORDERS, create_webhook, delete_webhook, webhook_rows

WEBHOOKS_PER_PAGE = 25


@requires(ADMIN)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def webhooks(request: HttpRequest) -> HttpResponse:
    form = WebhookForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with blaming(form):
            webhook, secret = create_webhook(**form.cleaned_data, user=request.user)
            return _page(request, WebhookForm(), made=webhook, secret=secret)
    form.mark_problems()
    return _page(request, form)


@requires(ADMIN)
@posted_from("webhooks")
def delete(request: HttpRequest, webhook_id: int) -> HttpResponse:
    return _act(request, partial(delete_webhook, webhook_id=webhook_id), "The webhook was deleted.")


@requires(ADMIN)
@posted_from("webhooks")
def switch_on(request: HttpRequest, webhook_id: int) -> HttpResponse:
    act = partial(webhooks_slice.switch_on, webhook_id=webhook_id)
    return _act(request, act, "The webhook is on again. What it missed is not sent.")


@requires(ADMIN)
@posted_from("webhooks")
def send_test(request: HttpRequest, webhook_id: int) -> HttpResponse:
    act = partial(webhooks_slice.send_test, webhook_id=webhook_id)
    return _act(request, act, "A test message was queued; its result appears below.")


def _act(request: HttpRequest, act: Callable[[], object], words: str) -> HttpResponse:
    with reporting(request):
        act()
        messages.success(request, words)
    return redirect("webhooks")


def _page(
    request: HttpRequest, form: WebhookForm, *, made: WebhookRecord | None = None, secret: str = ""
) -> HttpResponse:
    """Return the list with the form; `secret` is on this one answer and nowhere else."""
    query = request.GET if request.method == "GET" else {}
    view = read_view(query, orders=WEBHOOK_ORDERS, default="-created_at", size=WEBHOOKS_PER_PAGE)
    page = {"form": form, "made": made, "secret": secret, "list": view.slice(webhook_rows()), "off_after": OFF_AFTER}
    status = 422 if form.errors else 201 if made else 200
    return render(request, "access/webhooks.html", page, status=status)
