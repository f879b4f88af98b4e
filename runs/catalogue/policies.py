"""Store policies by name, with a new version per change, so that a verdict refers to the one it used."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction

from evalboard.core import digest
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.suite import DEFAULT_POLICIES, DEFAULT_POLICY, PolicyDocument, parse_policy
from runs.catalogue.endpoints import SLUG
from runs.models import PolicyRecord, Suite

LONGEST_TITLE = 200


def create_policy(*, slug: str, title: str, settings: Mapping[str, Any], user: Any = None) -> tuple[PolicyRecord, bool]:
    """Store a policy, or its next version if its settings changed; else return False.

    Raises InvalidInput with fields, or Conflict if it is being changed at this moment.
    """
    fields: dict[str, str] = {}
    if not SLUG.fullmatch(slug):
        fields["slug"] = "Use small letters, digits, dots, dashes; at most 80."
    if len(title) > LONGEST_TITLE or "\0" in title:
        fields["title"] = f"Use at most {LONGEST_TITLE} characters."
    if fields:
        raise InvalidInput("The policy is not valid.", fields=fields)
    complete = parse_policy(settings).settings()
    content = digest.digest_json(complete)
    with transaction.atomic():
        newest = PolicyRecord.objects.select_for_update().filter(slug=slug).order_by("-version").first()
        if newest is not None and newest.digest == content:
            return newest, False
        stored = PolicyRecord(
            slug=slug,
            version=1 if newest is None else newest.version + 1,
            title=title or slug,
            created_by=user,
            settings=complete,
            digest=content,
        )
        try:
            with transaction.atomic():
                stored.save()
        except IntegrityError as raced:
            raise Conflict(f"Another request changed the policy {slug} at the same moment; try again.") from raced
        return stored, True


def store_default_policies() -> list[str]:
    """Store default policies whose name is free, and return their names. Changed ones stay."""
    known = set(PolicyRecord.objects.filter(slug__in=DEFAULT_POLICIES).values_list("slug", flat=True))
    absent = {slug: default for slug, default in DEFAULT_POLICIES.items() if slug not in known}
    for slug, default in absent.items():
        create_policy(slug=slug, title=default["title"], settings=default["settings"])
    return list(absent)


def adopt_policy(*, suite: Suite, stated: PolicyDocument | None) -> None:
    """Make the policy of a suite's document the suite's policy. The caller has locked the suite's row.

    Pushing the same document again changes nothing, so a policy that people changed since is unaffected. Raises
    InvalidInput if the name is another policy's: the right to push a suite is only a right over its own thresholds.
    """
    before = suite.policy
    if stated is None:
        after = None
    elif before is not None and (before.slug, before.settings) == (stated.slug, stated.settings.settings()):
        return
    else:
        after = _document_policy(suite, stated)
    if before != after:
        suite.policy = after
        suite.save(update_fields=["policy"])


def _document_policy(suite: Suite, stated: PolicyDocument) -> PolicyRecord:
    settings = stated.settings.settings()
    if stated.slug in DEFAULT_POLICIES:
        store_default_policies()
    known = PolicyRecord.objects.filter(slug=stated.slug)
    # A policy that people made, or that comes with Evalboard, may be named as it is.
    if stated.slug in DEFAULT_POLICIES or known.filter(version=1, created_by__isnull=False).exists():
        newest = newest_policy(stated.slug)
        if newest.settings != settings:
            text = f"Policy {stated.slug} has other settings, and a suite cannot change them; choose another name."
            raise InvalidInput("The suite's policy is not valid.", fields={"policy.slug": text})
        return newest
    others = Suite.objects.filter(policy__slug=stated.slug).exclude(pk=suite.pk)
    holder = others.exclude(reference_of__suite=suite).first()
    if holder is not None:
        text = f"Policy {stated.slug} is the one of suite {holder.slug}; choose another name."
        raise InvalidInput("The suite's policy is not valid.", fields={"policy.slug": text})
    return create_policy(slug=stated.slug, title=stated.title, settings=settings)[0]


def newest_policy(slug: str = DEFAULT_POLICY) -> PolicyRecord:
    """Return the version that a release is judged under from now on. Raises NotFound.

    The default policies are there whether anybody has loaded them or not.
    """
    newest = PolicyRecord.objects.filter(slug=slug).order_by("-version")
    policy = newest.first()
    if policy is None and slug in DEFAULT_POLICIES:
        store_default_policies()
        policy = newest.first()
    if policy is None:
        raise NotFound(f"There is no policy {slug}; the settings page lists them.")
    return policy
