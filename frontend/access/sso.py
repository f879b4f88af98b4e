"""Sign in through the organisation's provider with django-allauth.

Loaded and routed only if one is configured.

Nobody is matched by name or address with an existing person: that would hand over the account to anyone who can choose
a name at the provider. A new identity is a new person.
"""

from collections.abc import Mapping
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from jwt import get_unverified_header
from jwt.exceptions import PyJWTError
from requests import RequestException

from evalboard.core.errors import EvalboardError, Refused
from evalboard.oidc import Oidc
from runs.access import ANYONE, grant_role, requires

ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})


def _configured() -> Oidc:
    if settings.OIDC is None:
        raise ImproperlyConfigured("No provider is configured; EVALBOARD_OIDC_ISSUER names one.")
    return settings.OIDC


PROVIDER = _configured()


class ProviderAway(EvalboardError):
    """The provider does not answer, or its answer is invalid."""

    code = "sign_in_away"
    title = "The sign-in service does not answer"
    status = 502


class Accounts(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Disables allauth's messages and its own sign-up."""

    def add_message(self, *arguments: Any, **more: Any) -> None:
        return

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False


class SignIns(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Who may come in, and as what."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return True

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Set the role that the claims give. Raises Refused for people without one."""
        claims = _claims(sociallogin)
        role = PROVIDER.role_of(claims)
        if role is None:
            raise Refused("Your account has no role here. Ask your administrator for one.")
        sociallogin.email_addresses = []  # never match by name or address
        if not sociallogin.is_existing:
            return
        if not sociallogin.user.is_active:
            raise Refused("You may no longer sign in here. Ask your administrator for access.")
        if PROVIDER.role_claim:
            grant_role(user=sociallogin.user, role=role)

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> Any:
        person = super().save_user(request, sociallogin, form)
        if role := PROVIDER.role_of(_claims(sociallogin)):  # always: others were refused before
            grant_role(user=person, role=role)
        return person

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Exception | None = None, **more: Any
    ) -> None:
        """Raise an error for our error page, always."""
        if isinstance(exception, RequestException):
            raise ProviderAway(f"{PROVIDER.name} does not answer; try again in a moment.") from exception
        raise Refused(
            f"{PROVIDER.name} did not sign you in, or the sign-in was begun elsewhere or too long ago. Start again."
        ) from exception


class SignedTokens(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """Checks the signature of every id token, even of one that came straight from the provider."""

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        try:
            if get_unverified_header(id_token).get("alg") not in ALGORITHMS:
                raise OAuth2Error("The id token is signed by a way that is not taken.")
        except PyJWTError as none:
            raise OAuth2Error("The id token cannot be read.") from none
        claims: dict[str, Any] = jwtkit.verify_and_decode(
            credential=id_token,
            keys_url=self.openid_config["jwks_uri"],
            issuer=self.openid_config["issuer"],
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )
        return claims


def _claims(sociallogin: SocialLogin) -> Mapping[str, Any]:
    """Return the provider's claims. Raises Refused if its two sources are about different people."""
    extra = sociallogin.account.extra_data
    signed, userinfo = extra.get("id_token") or {}, extra.get("userinfo") or {}
    if not signed or (userinfo and userinfo.get("sub") != signed.get("sub")):
        raise Refused(f"{PROVIDER.name} did not say clearly who you are.")
    return {**userinfo, **signed}


@requires(ANYONE)
@never_cache
@require_safe
def begin(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Redirect to the provider.

    By GET, because the content security policy blocks forms that redirect to another site.
    """
    return _go(OAuth2LoginView, request, provider_id)


@requires(ANYONE)
@never_cache
@require_safe
def end(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Sign in whom the provider has sent back, or say why not."""
    return _go(OAuth2CallbackView, request, provider_id)


def _go(view: Any, request: HttpRequest, provider_id: str) -> HttpResponseBase:
    try:
        response: HttpResponseBase = view.adapter_view(SignedTokens(request, provider_id))(request)
    except (RequestException, KeyError) as problem:  # KeyError: what was fetched is no description of a provider
        raise ProviderAway(f"{PROVIDER.name} does not answer; try again in a moment.") from problem
    return response
