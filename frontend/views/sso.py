"""The way to the organisation's provider and back. Routed only where one is configured."""

from typing import Any

from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from requests import RequestException

from frontend.sso import PROVIDER, ProviderAway, SignedTokens
from runs.access import ANYONE, requires


@requires(ANYONE)
@never_cache
@require_safe
def begin(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Send somebody to the provider. By GET: a form that is answered by a way out is stopped by the content policy."""
    return _go(OAuth2LoginView, request, provider_id)


@requires(ANYONE)
@never_cache
@require_safe
def end(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """The provider has sent somebody back: sign them in, or say why not."""
    return _go(OAuth2CallbackView, request, provider_id)


def _go(view: Any, request: HttpRequest, provider_id: str) -> HttpResponseBase:
    try:
        response: HttpResponseBase = view.adapter_view(SignedTokens(request, provider_id))(request)
    except (RequestException, KeyError) as problem:  # KeyError: what was fetched is no description of a provider
        raise ProviderAway(f"{PROVIDER.name} does not answer; try again in a moment.") from problem
    return response
