"""A suite's badge for readmes and dashboards, visible to sessions and tokens, or to all if configured."""

import hashlib
from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.views.decorators.http import require_safe

from evalboard.wording.messages import Messages
from frontend.badges.picture import picture
from runs.access import READ, requires, scopes_of, use_token
from runs.release import suite_badge

KEPT_SECONDS = 60
REFUSED = Messages(
    "badge",
    {
        ("token", "denies"): {
            "unknown_token": "The token is unknown or expired, or its owner may no longer sign in.",
            "no_scope": "The token needs the scope read.",
        },
    },
)

View = Callable[..., HttpResponseBase]


def or_by_token(view: View) -> View:
    """Allow tokens with scope read, as in the API, and everyone if badges are public."""

    @wraps(view)
    def guarded(request: HttpRequest, slug: str) -> HttpResponseBase:
        if settings.PUBLIC_BADGES:
            return badge_of(request, slug)
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.casefold() != "bearer":
            return view(request, slug)
        token = use_token(secret=secret.strip())
        if token is None:
            return _refused(401, "unknown_token")
        if READ not in token.scopes or READ not in scopes_of(token.user):
            return _refused(403, "no_scope")
        return badge_of(request, slug)

    return guarded


@require_safe
def badge_of(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Return the badge, cached for a minute, with an ETag."""
    text = render_to_string("badges/badge.svg", {"badge": picture(suite_badge(slug))})
    answer = HttpResponse(text, content_type="image/svg+xml; charset=utf-8")
    answer.headers["ETag"] = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    whose = "public" if settings.PUBLIC_BADGES else "private"
    answer.headers["Cache-Control"] = f"{whose}, max-age={KEPT_SECONDS}"
    if settings.PUBLIC_BADGES:
        # Pages of others show it: without this their browsers may be told to show pictures of their own site alone.
        answer.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    else:
        patch_vary_headers(answer, ["Authorization", "Cookie"])
    return get_conditional_response(request, etag=answer.headers["ETag"], response=answer) or answer


@or_by_token
@requires(READ)
def badge(request: HttpRequest, slug: str) -> HttpResponseBase:
    return badge_of(request, slug)


def _refused(status: int, code: str) -> HttpResponse:
    answer = HttpResponse(f"{REFUSED.write(code)}\n", status=status, content_type="text/plain; charset=utf-8")
    if status == 401:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="evalboard"'
    return answer
