"""Read the settings of sign-in through an organisation's OpenID Connect provider.

It is off unless an issuer is set. django-allauth does the work, which only `evalboard[sso]` installs; docs/deploy.md
says how to set it up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from environs import FileAwareEnv

PROVIDER = "oidc"  # part of the address to which the provider redirects
ROLES = ("viewer", "engineer", "release manager", "admin")  # least to most, as runs.access has them
NOBODY = "none"  # in place of a role: who has no other may not come in
APPS = ["allauth", "allauth.account", "allauth.socialaccount", "allauth.socialaccount.providers.openid_connect"]


@dataclass(frozen=True, slots=True)
class Oidc:
    """The settings of a provider.

    role: for people whose claim gives none. roles: the role of each value of `role_claim`.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str
    role: str
    role_claim: str
    roles: Mapping[str, str]

    def role_of(self, claims: Mapping[str, Any]) -> str | None:
        """Return the highest role that a person's claims give; None if they may not sign in."""
        groups = claims.get(self.role_claim, ()) if self.role_claim else ()
        values = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
        given = [self.roles[value] for value in values if isinstance(value, str) and value in self.roles]
        if given:
            return max(given, key=ROLES.index)
        return None if self.role == NOBODY else self.role


def read(env: FileAwareEnv) -> Oidc | None:
    """Read the provider from the environment, None if not set. Raises ImproperlyConfigured."""
    issuer = env.str("EVALBOARD_OIDC_ISSUER", "").rstrip("/")
    given = Oidc(
        issuer=issuer,
        client_id=env.str("EVALBOARD_OIDC_CLIENT_ID", ""),
        client_secret=env.str("EVALBOARD_OIDC_CLIENT_SECRET", ""),
        name=env.str("EVALBOARD_OIDC_NAME", "single sign-on"),
        role=env.str("EVALBOARD_OIDC_ROLE", "viewer"),
        role_claim=env.str("EVALBOARD_OIDC_ROLE_CLAIM", ""),
        roles=_pairs(env.str("EVALBOARD_OIDC_ROLES", "")),
    )
    if not issuer:
        return None
    if not issuer.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
        raise ImproperlyConfigured(f"EVALBOARD_OIDC_ISSUER={issuer!r} must start with https://.")
    if not given.client_id or not given.client_secret:
        raise ImproperlyConfigured(
            "EVALBOARD_OIDC_ISSUER is set; set EVALBOARD_OIDC_CLIENT_ID and EVALBOARD_OIDC_CLIENT_SECRET as well."
        )
    if given.role not in (*ROLES, NOBODY):
        raise ImproperlyConfigured(f"EVALBOARD_OIDC_ROLE={given.role!r} must be one of: {', '.join((*ROLES, NOBODY))}.")
    if bool(given.role_claim) != bool(given.roles):
        raise ImproperlyConfigured("EVALBOARD_OIDC_ROLE_CLAIM and EVALBOARD_OIDC_ROLES are set together or not at all.")
    if find_spec("allauth") is None:
        raise ImproperlyConfigured("EVALBOARD_OIDC_ISSUER is set, which needs django-allauth: install evalboard[sso].")
    return given


def providers(given: Oidc) -> dict[str, Any]:
    """SOCIALACCOUNT_PROVIDERS of django-allauth."""
    app = {
        "provider_id": PROVIDER,
        "name": given.name,
        "client_id": given.client_id,
        "secret": given.client_secret,
        "settings": {"server_url": given.issuer},
    }
    return {"openid_connect": {"APPS": [app], "OAUTH_PKCE_ENABLED": True}}


def _pairs(text: str) -> dict[str, str]:
    """`group=role, other=role`."""
    pairs: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        value, _, role = (word.strip() for word in part.rpartition("="))
        if not value or role not in ROLES:
            raise ImproperlyConfigured(
                f"EVALBOARD_OIDC_ROLES has {part!r}; write value=role with commas, roles being: {', '.join(ROLES)}."
            )
        pairs[value] = role
    return pairs
