"""Endpoints, profiles, policies and model names: all people read them, admins add to them."""

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.core.cost import parse_price
from evalboard.core.suite import DEFAULT_POLICIES, DEFAULT_POLICY
from frontend.endpoints.forms import (
    ENDPOINT_FIELDS,
    REMOTE_FIELDS,
    EndpointForm,
    PolicyForm,
    ProfileForm,
    RemoteEndpointForm,
    SameModelForm,
    remote_fields,
)
from frontend.endpoints.words import SAID
from frontend.shell.forms import PlainForm, blaming, posted_from, reporting
from frontend.templatetags.drawing import as_json
from runs import fingerprints
from runs.access import ADMIN, READ, requires
from runs.catalogue import create_endpoint, create_policy, create_profile, ignore_fingerprint, read, set_price
from runs.fingerprints import logged_names, same_model_rows, say_same_model
from runs.models import EndpointRecord

SECRETIVE = frozenset(("auth", "headers"))  # where a key may have been typed, which no page repeats
REMOTE = EndpointRecord.Engine.OPENAI


@requires(READ)
@require_safe
def settings(request: HttpRequest) -> HttpResponse:
    page = {
        "profiles": read.profile_rows(),
        "policies": read.policy_rows(),
        "same_models": same_model_rows(),
        "has_logged_models": len(logged_names()) > 1,
    }
    return render(request, "endpoints/settings.html", page)


@requires(ADMIN)
@posted_from("endpoint", "endpoint")
def set_fingerprint(request: HttpRequest, endpoint: str) -> HttpResponse:
    """Ignore the fingerprints of an external endpoint's answers, or read them again."""
    with reporting(request):
        ignore_fingerprint(endpoint=endpoint, ignores=request.POST.get("ignores") == "yes")
    return redirect("endpoint", endpoint)


@requires(ADMIN)
@posted_from("endpoint", "endpoint")
def price(request: HttpRequest, endpoint: str) -> HttpResponse:
    """Set what a million tokens of an external endpoint cost; a blank field: not known."""
    text = request.POST.get("price", "").strip()
    with reporting(request):
        set_price(endpoint=endpoint, price=parse_price(text) if text else None)
    return redirect("endpoint", endpoint)


@requires(ADMIN)
@require_http_methods(["GET", "HEAD", "POST"])
def new_endpoint(request: HttpRequest) -> HttpResponse:
    is_remote = request.GET.get("kind") == REMOTE
    rows = read.endpoint_rows()
    base = next((row for row in rows if row.slug == request.GET.get("from") and row.engine == REMOTE), None)
    form = (
        RemoteEndpointForm(request.POST or None, endpoints=rows, initial=remote_fields(base) if base else {})
        if is_remote
        else EndpointForm(request.POST or None)
    )
    if request.method == "POST" and form.is_valid():
        with blaming(form, names=REMOTE_FIELDS if is_remote else ENDPOINT_FIELDS):
            endpoint = create_endpoint(**form.cleaned_data, engine=REMOTE if is_remote else EndpointRecord.Engine.VLLM)
            messages.success(request, f"Endpoint {endpoint.slug} was added; runs can use it.")
            return redirect("endpoint", endpoint.slug)
    if is_remote and form.errors:
        form.forget(SECRETIVE & form.errors.keys())
    kinds = (("", "Your own: a worker loads the model", not is_remote), (REMOTE, "An external server", is_remote))
    return _form(request, form, "Add an endpoint", "remote_endpoint" if is_remote else "own_endpoint", kinds=kinds)


@requires(ADMIN)
@require_http_methods(["GET", "HEAD", "POST"])
def new_profile(request: HttpRequest) -> HttpResponse:
    known = {row.slug: row for row in read.profile_rows()}
    base = known.get(request.GET.get("from", ""))
    initial = {"slug": base.slug, "title": base.title, "settings": as_json(base.settings)} if base else {}
    form = ProfileForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        with blaming(form):
            profile, is_new = create_profile(**form.cleaned_data)
            state = "was added; runs can use it" if is_new else "was stored before with the same settings"
            messages.success(request, f"Profile {profile} {state}.")
            return redirect("settings")
    return _form(request, form, "Add a profile", "profile")


@requires(ADMIN)
@require_http_methods(["GET", "HEAD", "POST"])
def new_policy(request: HttpRequest) -> HttpResponse:
    known = {row.slug: row for row in read.policy_rows()}
    base = known.get(request.GET.get("from", ""))
    initial = {"slug": base.slug, "title": base.title} if base else {}
    settings = base.settings if base else DEFAULT_POLICIES[DEFAULT_POLICY]["settings"]
    form = PolicyForm(request.POST or None, initial=initial | {"settings": as_json(settings)})
    if request.method == "POST" and form.is_valid():
        with blaming(form, under="settings"):
            policy, is_new = create_policy(**form.cleaned_data, user=request.user)
            state = "was added; releases can use it" if is_new else "was stored before with the same settings"
            messages.success(request, f"Policy {policy} {state}.")
            return redirect("settings")
    return _form(request, form, "Add a policy", "policy")


@requires(ADMIN)
@require_http_methods(["GET", "HEAD", "POST"])
def new_same_model(request: HttpRequest) -> HttpResponse:
    form = SameModelForm(request.POST or None, names=logged_names())
    if request.method == "POST" and form.is_valid():
        with blaming(form):
            statement = say_same_model(**form.cleaned_data, user=request.user)
            messages.success(request, f"{statement.name} and {statement.other_name} count as one model from now on.")
            return redirect("settings")
    return _form(request, form, "Join two names", "same_model")


@requires(ADMIN)
@posted_from("settings")
def take_back_same_model(request: HttpRequest, same_model_id: int) -> HttpResponse:
    statement = fingerprints.take_back_same_model(same_model_id=same_model_id, user=request.user)
    messages.success(request, f"{statement.name} and {statement.other_name} count as two models again.")
    return redirect("settings")


def _form(
    request: HttpRequest, form: PlainForm, title: str, about: str, *, kinds: Sequence[tuple[str, str, bool]] = ()
) -> HttpResponse:
    """Show a form. about: a code of SAID. kinds: (query, words, whether it is this one) of each."""
    form.mark_problems()
    status = 422 if form.errors else 200
    page = {
        "form": form,
        "title": title,
        "about": SAID.write(about),
        "kinds": kinds,
        "section": "endpoints" if kinds else "settings",
    }
    return render(request, "endpoints/setting_new.html", page, status=status)
