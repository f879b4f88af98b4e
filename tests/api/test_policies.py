"""`/policies/`."""

from collections.abc import Callable
from typing import Any

import pytest

from runs.catalogue import store_default_policies
from runs.models import PolicyRecord, Suite
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db

SETTINGS = {"rule": "paired", "tolerance_points": 2.5}


def test_a_policy_is_stored_and_listed_in_its_newest_version(api: Api) -> None:
    store_default_policies()
    first = api.post("/policies/", {"slug": "tools", "title": "Tool calls", "settings": SETTINGS})
    assert first.status_code == 201
    body = first.json()
    assert (body["slug"], body["version"], body["title"], body["created_by"]) == ("tools", 1, "Tool calls", "root")
    assert (body["settings"]["rule"], body["settings"]["tolerance_points"]) == ("paired", 2.5)
    assert body["created_at"].endswith("Z")
    changed = api.post("/policies/", {"slug": "tools", "settings": SETTINGS | {"tolerance_points": 3.0}})
    assert (changed.status_code, changed.json()["version"]) == (201, 2)
    listed = api.get("/policies/").json()["results"]
    assert [(each["slug"], each["version"]) for each in listed] == [("paired", 1), ("strict", 1), ("tools", 2)]


def test_the_same_settings_again_are_the_same_version(api: Api) -> None:
    api.post("/policies/", {"slug": "tools", "settings": SETTINGS})
    again = api.post("/policies/", {"slug": "tools", "settings": SETTINGS | {"guard_points": 1.0}})
    assert (again.status_code, again.json()["version"]) == (200, 1)
    assert PolicyRecord.objects.filter(slug="tools").count() == 1


def test_the_suites_that_carry_a_policy_are_named(api: Api) -> None:
    build.suite()
    api.post("/policies/", {"slug": "tools", "settings": SETTINGS})
    Suite.objects.update(policy=PolicyRecord.objects.get(slug="tools"))
    assert api.get("/policies/").json()["results"][0]["suites"] == ["colours"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"settings": SETTINGS}, "slug"),
        ({"slug": "tools"}, "settings"),
        ({"slug": "tools", "settings": []}, "settings"),
        ({"slug": "No good", "settings": SETTINGS}, "slug"),
        ({"slug": "tools", "settings": SETTINGS, "alpha": 0.5}, "alpha"),
        ({"slug": "tools", "settings": {"rule": "paired"}}, "tolerance_points"),
        ({"slug": "tools", "settings": SETTINGS | {"rule": "lucky"}}, "rule"),
        ({"slug": "tools", "settings": SETTINGS | {"tolerance_points": "1"}}, "tolerance_points"),
        ({"slug": "tools", "settings": SETTINGS | {"alpha": 0.5}}, "alpha"),
        ({"slug": "tools", "settings": SETTINGS | {"looks": [1, 2]}}, "looks"),
        ({"slug": "tools", "title": "x" * 201, "settings": SETTINGS}, "title"),
    ],
)
def test_a_policy_that_is_none_is_refused_by_field(api: Api, body: Any, field: str) -> None:
    answer = api.post("/policies/", body)
    assert answer.status_code == 400
    assert any(name.endswith(field) for name in answer.json()["fields"])
    assert not PolicyRecord.objects.exists()


def test_only_an_admin_writes_one(as_role: Callable[[str], Api]) -> None:
    body = {"slug": "tools", "settings": SETTINGS}
    for role in ("viewer", "engineer", "release manager"):
        assert as_role(role).post("/policies/", body).status_code == 403
        assert as_role(role).get("/policies/").status_code == 200
    assert not PolicyRecord.objects.exists()
    assert as_role("admin").post("/policies/", body).status_code == 201
