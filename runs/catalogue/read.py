"""Endpoints, profiles and policies as the API, the settings page and the forms have them."""

from collections import defaultdict

from evalboard.contract import catalogue as contract
from runs.models import Endpoint, Policy, Profile, Suite


def endpoint_rows() -> tuple[contract.Endpoint, ...]:
    """List all endpoints by slug."""
    return tuple(map(endpoint_row, Endpoint.objects.order_by("slug")))


def profile_rows() -> tuple[contract.Profile, ...]:
    """List the newest version of every profile, by slug."""
    return tuple(map(profile_row, Profile.objects.order_by("slug", "-version").distinct("slug")))


def policy_rows() -> tuple[contract.Policy, ...]:
    """List the newest version of every policy, by slug, with the suites whose own policy it is, in any version."""
    newest = Policy.objects.select_related("created_by").order_by("slug", "-version").distinct("slug")
    suites: dict[str, list[str]] = defaultdict(list)
    for policy, suite in Suite.objects.exclude(policy=None).order_by("slug").values_list("policy__slug", "slug"):
        suites[policy].append(suite)
    return tuple(policy_row(policy, suites=tuple(suites[policy.slug])) for policy in newest)


def endpoint_row(endpoint: Endpoint) -> contract.Endpoint:
    address, revision = endpoint.model_repo or endpoint.model_path, endpoint.model_revision
    in_repo = contract.ModelInRepo(repo=address, revision=revision) if revision else None
    return contract.Endpoint(
        slug=endpoint.slug,
        engine=endpoint.engine,
        model=in_repo or contract.ModelAtPath(path=address),
        dtype=endpoint.dtype,
        quantization=endpoint.quantization,
        line=endpoint.line,
        max_model_len=endpoint.max_model_len or 0,
        pool=endpoint.pool,
    )


def profile_row(profile: Profile) -> contract.Profile:
    return contract.Profile(
        slug=profile.slug,
        version=profile.version,
        title=profile.title,
        settings=profile.settings,
        digest=profile.digest,
        created_at=profile.created_at,
    )


def policy_row(policy: Policy, *, suites: tuple[str, ...] = ()) -> contract.Policy:
    return contract.Policy(
        slug=policy.slug,
        version=policy.version,
        title=policy.title,
        settings=policy.settings,
        digest=policy.digest,
        suites=suites,
        created_by=policy.created_by.get_username() if policy.created_by else None,
        created_at=policy.created_at,
    )
