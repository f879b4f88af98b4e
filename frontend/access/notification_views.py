"""What a person follows, and the addresses where Evalboard notifies them."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from frontend.access.forms import AddressForm
from frontend.shell.forms import blaming, posted_from, reporting
from runs import webhooks
from runs.access import ANYONE, READ, requires
from runs.webhooks import delete_webhook, webhook_rows
from runs.webhooks.follows import NO_EMAIL, create_address, follow_rows, read_stop_link
from runs.webhooks.follows import follow as follow_subject
from runs.webhooks.follows import unfollow as unfollow_subject


@requires(READ)
@require_http_methods(["GET", "HEAD", "POST"])
def notifications(request: HttpRequest) -> HttpResponse:
    form = AddressForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with blaming(form, names={"url": "address"}):
            create_address(url=form.url(), person=request.user)
            messages.success(request, "The address was added. Send a test message to see that it works.")
            return redirect("notifications")
    form.mark_problems()
    page: dict[str, Any] = {
        "form": form,
        "addresses": webhook_rows(owner=request.user),
        "follows": follow_rows(request.user),
        "no_email": "" if settings.EMAIL_HOST else NO_EMAIL,
    }
    return render(request, "access/notifications.html", page, status=422 if form.errors else 200)


@requires(READ)
@posted_from("notifications")
def delete_address(request: HttpRequest, webhook_id: int) -> HttpResponse:
    return _act(request, webhook_id, delete_webhook, "The address was deleted.")


@requires(READ)
@posted_from("notifications")
def switch_address_on(request: HttpRequest, webhook_id: int) -> HttpResponse:
    return _act(request, webhook_id, webhooks.switch_on, "The address is on again. What it missed is not sent.")


@requires(READ)
@posted_from("notifications")
def test_address(request: HttpRequest, webhook_id: int) -> HttpResponse:
    return _act(request, webhook_id, webhooks.send_test, "A test message was queued. Reload to see its result.")


def _act(request: HttpRequest, webhook_id: int, act: Callable[..., object], words: str) -> HttpResponse:
    """Act on an address of one's own."""
    with reporting(request):
        act(webhook_id=webhook_id, owner=request.user)
        messages.success(request, words)
    return redirect("notifications")


@requires(READ)
@posted_from("notifications")
def follow(request: HttpRequest) -> HttpResponse:
    kind, name = request.POST.get("kind", ""), request.POST.get("name", "")
    with reporting(request):
        follow_subject(kind=kind, name=name, person=request.user)
        (row,) = follow_rows(request.user, kind=kind, name=name)
        if not webhook_rows(owner=request.user):
            messages.warning(request, f"You follow {kind} {name}. Add an address below, or nothing can reach you.")
            return redirect("notifications")
        messages.success(request, f"Evalboard notifies you about {kind} {name}.")
        return redirect(row.url)
    return redirect("notifications")


@requires(READ)
@posted_from("notifications")
def unfollow(request: HttpRequest, follow_id: int) -> HttpResponse:
    unfollow_subject(follow_id=follow_id, person=request.user)
    messages.success(request, "Evalboard no longer notifies you about it.")
    place = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(place, allowed_hosts=None)
    return redirect(place if is_ours else reverse("notifications"))


@csrf_exempt  # a mail program sends it without a cookie; the link is signed
@requires(ANYONE)
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, stop_link: str) -> HttpResponse:
    """Stop following by the link of an e-mail. Opening it, as scanners of mail do, changes nothing."""
    followed = read_stop_link(stop_link)
    if request.method == "POST" and followed is not None:
        unfollow_subject(follow_id=followed.pk, person=followed.person)
    return render(request, "access/unsubscribe.html", {"followed": followed, "is_done": request.method == "POST"})
