"""Policies: stored by version, carried by suites, and never taken over by who may not."""

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evalboard.core.errors import InvalidInput, NotFound
from evalboard.core.suite import DEFAULT_POLICIES
from runs.catalogue import create_policy, policies, store_default_policies
from runs.models import PolicyRecord, Suite, SuiteVersionRecord
from runs.suites import push_suite
from tests import build
from tests.runs import judged
from tests.runs.judged import SAMPLE_POLICY

pytestmark = pytest.mark.django_db
LAX = {"rule": "paired", "tolerance_points": 9.0}


def versions(slug: str) -> list[tuple[int, float]]:
    return [
        (row.version, row.settings["tolerance_points"]) for row in PolicyRecord.objects.filter(slug=slug).order_by("id")
    ]


def own(slug: str = "sample") -> PolicyRecord:
    found = Suite.objects.get(slug=slug).policy
    assert found is not None
    return found


def test_a_change_makes_a_version_and_the_same_again_none() -> None:
    person = build.user()
    first, is_new = create_policy(slug="lax", title="Lax", settings=LAX, user=person)
    assert (is_new, first.version, first.created_by, str(first)) == (True, 1, person, "lax")
    # Defaults left out or written out are the same settings.
    again, is_new = create_policy(slug="lax", title="Lax", settings={**LAX, "looks": [5, 10, 20]})
    assert (again.pk, is_new) == (first.pk, False)
    second, _ = create_policy(slug="lax", title="", settings={**LAX, "tolerance_points": 2})
    assert (second.version, str(second), second.title) == (2, "lax v2", "lax")
    assert policies.newest_policy("lax") == second


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"slug": "Lax!"}, "slug"),
        ({"title": "x" * 201}, "title"),
        ({"title": "a\0b"}, "title"),
        ({"settings": {**LAX, "rule": "kind"}}, "rule"),
        ({"settings": {"rule": "strict"}}, "tolerance_points"),
    ],
)
def test_what_is_malformed_is_named_and_nothing_stored(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        create_policy(**{"slug": "lax", "title": "Lax", "settings": LAX, **changed})
    assert list(refused.value.fields) == [field]
    assert not PolicyRecord.objects.exists()


def test_the_defaults_are_stored_once_and_changed_ones_stay() -> None:
    call_command("load_policies", stdout=io.StringIO())
    assert set(PolicyRecord.objects.values_list("slug", "version")) == {(slug, 1) for slug in DEFAULT_POLICIES}
    create_policy(slug="strict", title="Ours", settings={"rule": "strict", "tolerance_points": 2})
    assert store_default_policies() == []
    assert policies.newest_policy("strict").title == "Ours"


def test_no_policy_of_that_name() -> None:
    with pytest.raises(NotFound, match="no policy lax"):
        policies.newest_policy("lax")


def test_a_suite_brings_its_policy_and_another_tolerance_is_no_other_suite() -> None:
    version = judged.suite(policy={**SAMPLE_POLICY, "title": "For the sample"})
    assert (own().slug, own().title, own().settings["tolerance_points"]) == ("sample", "For the sample", 5.0)
    again, is_new = push_suite(document=judged.document(policy={**SAMPLE_POLICY, "tolerance_points": 4}))
    assert (again.pk, is_new) == (version.pk, False)
    assert versions("sample") == [(1, 5.0), (2, 4.0)]
    assert own().version == 2


def test_the_same_document_again_leaves_what_people_changed() -> None:
    """`make up` pushes the sample suite at every start."""
    judged.suite(policy=SAMPLE_POLICY)
    create_policy(slug="sample", title="Ours", settings=LAX)
    judged.suite(policy=SAMPLE_POLICY)
    assert versions("sample") == [(1, 5.0), (2, 9.0)]
    assert policies.newest_policy(own().slug).title == "Ours"


def test_a_document_without_a_policy_takes_it_off() -> None:
    judged.suite(policy=SAMPLE_POLICY)
    judged.suite()
    assert Suite.objects.get().policy is None


def test_a_suite_changes_no_policy_of_others() -> None:
    judged.suite(policy=SAMPLE_POLICY)
    for settings in ({**SAMPLE_POLICY, "tolerance_points": 50}, SAMPLE_POLICY):
        with pytest.raises(InvalidInput) as refused:
            judged.suite("colours", policy=settings)
        assert "suite sample" in refused.value.fields["policy.slug"]
    assert not SuiteVersionRecord.objects.filter(suite__slug="colours").exists()
    assert versions("sample") == [(1, 5.0)]


@pytest.mark.parametrize("slug", ["strict", "lax"])
def test_a_policy_that_people_made_can_be_named_and_not_changed(slug: str) -> None:
    create_policy(slug="lax", title="Lax", settings=LAX, user=build.user())
    settings = LAX if slug == "lax" else DEFAULT_POLICIES["strict"]["settings"]
    judged.suite(policy={"slug": slug, **settings})
    named = own()
    assert (named.slug, named.version) == (slug, 1)
    with pytest.raises(InvalidInput) as refused:
        judged.suite(policy={"slug": slug, **settings, "tolerance_points": 50})
    assert "cannot change them" in refused.value.fields["policy.slug"]
    assert (own(), PolicyRecord.objects.filter(slug=slug).count()) == (named, 1)


def test_the_samples_bring_the_defaults_and_the_samples_own(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    settings.MODEL_ROOTS = [tmp_path / "models"]
    for _ in range(2):
        call_command("load_samples", no_runs=True, stdout=io.StringIO())
    assert set(PolicyRecord.objects.values_list("slug", "version")) == {("strict", 1), ("paired", 1), ("sample", 1)}
    assert (own().settings["rule"], own().settings["tolerance_points"], own().settings["guard_points"]) == (
        "paired",
        5.0,
        5.0,
    )
