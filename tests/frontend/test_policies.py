"""Policies on the settings page, and how an admin stores another version."""

import json
from html import unescape

import pytest

from runs.catalogue import store_default_policies
from runs.models import PolicyRecord

pytestmark = pytest.mark.django_db
NEW = "/settings/policies/new/"


@pytest.fixture(autouse=True)
def defaults(db):
    store_default_policies()


def page_of(client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def test_everybody_reads_them_and_admins_may_add(viewer, admin):
    shown, may = page_of(viewer, "/settings/"), page_of(admin, "/settings/")
    for policy in PolicyRecord.objects.all():
        assert policy.title in shown
    assert "5, 10, 20" in shown
    assert NEW not in shown
    assert f'href="{NEW}?from=strict"' in may


def test_a_change_makes_the_next_version_with_its_author(admin):
    assert '"tolerance_points": 1.0' in page_of(admin, f"{NEW}?from=strict")
    settings = {"rule": "strict", "tolerance_points": 2.5, "guard_points": 1.0, "looks": [3, 10, 20]}
    body = {"slug": "strict", "title": "Wider", "settings": json.dumps(settings)}
    assert admin.post(NEW, body).headers["Location"] == "/settings/"
    newest = PolicyRecord.objects.get(slug="strict", version=2)
    assert (newest.settings["tolerance_points"], newest.created_by.username) == (2.5, "admin")
    shown = page_of(admin, "/settings/")
    assert "2.5" in shown
    assert "3, 10, 20" in shown
    again = admin.post(NEW, body, follow=True)
    assert "was stored before with the same settings" in unescape(again.content.decode())
    assert PolicyRecord.objects.filter(slug="strict").count() == 2


@pytest.mark.parametrize(
    "settings",
    ["{", "[]", '{"rule": "lenient", "tolerance_points": 1}', '{"rule": "paired"}'],
)
def test_a_policy_that_is_not_one_is_refused_at_its_field(admin, settings):
    answer = admin.post(NEW, {"slug": "mine", "title": "Mine", "settings": settings})
    assert answer.status_code == 422
    assert 'id="id_settings-problem"' in answer.content.decode()
    assert not PolicyRecord.objects.filter(slug="mine").exists()
