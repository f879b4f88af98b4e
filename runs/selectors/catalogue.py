"""Endpoints, profiles and policies as the settings page and the forms show them."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runs.models import Endpoint, Policy, Profile, Suite


@dataclass(frozen=True, slots=True)
class EndpointRow:
    slug: str
    engine: str
    model_name: str
    model: str
    revision: str
    dtype: str
    quantization: str
    line: str
    max_model_len: int
    pool: str


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """The newest version of a profile."""

    slug: str
    version: int
    title: str
    settings: dict[str, Any]
    digest: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """The newest version of a policy. `suites` are those whose own policy it is, in any version."""

    slug: str
    version: int
    title: str
    settings: dict[str, Any]
    digest: str
    created_by: str
    created_at: datetime
    suites: tuple[str, ...]


def endpoint_rows() -> tuple[EndpointRow, ...]:
    """All endpoints by slug."""
    return tuple(map(endpoint_row, Endpoint.objects.order_by("slug")))


def profile_rows() -> tuple[ProfileRow, ...]:
    """The newest version of every profile, by slug."""
    return tuple(map(profile_row, Profile.objects.order_by("slug", "-version").distinct("slug")))


def policy_rows() -> tuple[PolicyRow, ...]:
    """The newest version of every policy, by slug."""
    newest = Policy.objects.select_related("created_by").order_by("slug", "-version").distinct("slug")
    suites: dict[str, list[str]] = defaultdict(list)
    for policy, suite in Suite.objects.exclude(policy=None).order_by("slug").values_list("policy__slug", "slug"):
        suites[policy].append(suite)
    return tuple(policy_row(policy, suites=tuple(suites[policy.slug])) for policy in newest)


def endpoint_row(endpoint: Endpoint) -> EndpointRow:
    return EndpointRow(
        slug=endpoint.slug,
        engine=endpoint.engine,
        model_name=endpoint.model_name,
        model=endpoint.model_repo or endpoint.model_path,
        revision=endpoint.model_revision,
        dtype=endpoint.dtype,
        quantization=endpoint.quantization,
        line=endpoint.line,
        max_model_len=endpoint.max_model_len,
        pool=endpoint.pool,
    )


def profile_row(profile: Profile) -> ProfileRow:
    return ProfileRow(
        profile.slug, profile.version, profile.title, profile.settings, profile.digest, profile.created_at
    )


def policy_row(policy: Policy, *, suites: tuple[str, ...] = ()) -> PolicyRow:
    return PolicyRow(
        slug=policy.slug,
        version=policy.version,
        title=policy.title,
        settings=policy.settings,
        digest=policy.digest,
        created_by=policy.created_by.get_username() if policy.created_by else "",
        created_at=policy.created_at,
        suites=suites,
    )
