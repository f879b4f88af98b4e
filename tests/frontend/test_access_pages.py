"""The pages on which people let programs in, and have programs told."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from runs.access import create_token
from runs.models import OutboxMessage, Token, WebhookRecord
from runs.webhooks import webhooks
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db
HOOK = {"url": "https://hooks.example/x?key=1", "events": ["run.failed", "release.decided"]}


def token_form(**changes: Any) -> dict[str, Any]:
    return {"name": "release-lane", "scopes": ["read", "run"], "days": "30", **changes}


def shown(page: str, prefix: str) -> str:
    """The secret that a page offers for copying."""
    found = re.search(rf'data-copy="({prefix}[^"]+)"', page)
    assert found is not None
    return found[1]


def test_a_token_is_shown_on_one_answer_and_on_no_other(engineer: Client) -> None:
    made = engineer.post("/settings/tokens/", token_form())
    assert made.status_code == 201
    assert "no-store" in made["Cache-Control"]
    secret = shown(made.content.decode(), "evb_")
    assert Api(secret).get("/runs/").status_code == 200
    page = engineer.get("/settings/tokens/").content.decode()
    assert secret not in page
    assert Token.objects.get().label in page
    assert "release-lane" in page


def test_only_scopes_of_ones_own_role_are_offered(client_of: Callable[[str], Client]) -> None:
    for role, offered in (("viewer", 1), ("engineer", 2), ("release manager", 3), ("admin", 4)):
        page = client_of(role).get("/settings/tokens/").content.decode()
        assert page.count('name="scopes"') == offered, role
    refused = client_of("viewer").post("/settings/tokens/", token_form(scopes=["read", "admin"]))
    assert (refused.status_code, Token.objects.count()) == (422, 0)


@pytest.mark.parametrize("changes", [{"name": ""}, {"name": "x" * 81}, {"scopes": []}, {"days": "4000"}])
def test_what_is_no_token_is_said_at_its_field(engineer: Client, changes: dict[str, Any]) -> None:
    refused = engineer.post("/settings/tokens/", token_form(**changes))
    assert refused.status_code == 422
    assert "No token was created." in refused.content.decode()
    assert not Token.objects.exists()


def test_people_revoke_their_own_and_admins_anybodys(engineer: Client, viewer: Client, admin: Client) -> None:
    engineer.post("/settings/tokens/", token_form())
    token = Token.objects.get()
    assert "release-lane" not in viewer.get("/settings/tokens/").content.decode()
    assert viewer.post(f"/settings/tokens/{token.pk}/revoke/").status_code == 404
    assert "release-lane" in admin.get("/settings/tokens/").content.decode()
    assert admin.post(f"/settings/tokens/{token.pk}/revoke/").status_code == 302
    page = engineer.get("/settings/tokens/").content.decode()
    assert "revoked" in page
    assert f"/settings/tokens/{token.pk}/revoke/" not in page


def test_a_webhook_is_made_tested_and_deleted(admin: Client) -> None:
    made = admin.post("/settings/webhooks/", HOOK)
    assert made.status_code == 201
    secret = shown(made.content.decode(), "whsec_")
    hook = WebhookRecord.objects.get()
    assert hook.secret == secret
    page = admin.get("/settings/webhooks/").content.decode()
    assert secret not in page
    assert "not used yet" in page
    tested = admin.post(f"/settings/webhooks/{hook.pk}/test/", follow=True)
    assert "A test message was queued" in tested.content.decode()
    assert OutboxMessage.objects.get().event == webhooks.TEST
    admin.post(f"/settings/webhooks/{hook.pk}/delete/")
    assert not WebhookRecord.objects.exists()


def test_webhooks_are_sorted_by_what_the_address_says(admin: Client) -> None:
    for name in ("b", "a", "c"):
        admin.post("/settings/webhooks/", {**HOOK, "url": f"https://chat.example.com/{name}"})
    page = admin.get("/settings/webhooks/?ordering=url").content.decode()
    places = [page.index(f"https://chat.example.com/{name}") for name in "abc"]
    assert places == sorted(places)
    assert '<a class="sort ascending" href="?ordering=-url" aria-current="true">address</a>' in page


def test_a_webhook_that_was_switched_off_says_why_and_is_switched_on(admin: Client) -> None:
    admin.post("/settings/webhooks/", HOOK)
    hook = WebhookRecord.objects.get()
    WebhookRecord.objects.update(is_active=False, last_error="It answered 500.", n_failures=5)
    page = admin.get("/settings/webhooks/").content.decode()
    for words in ("switched off", "It answered 500.", "5 in a row", "Switch it on again"):
        assert words in page
    assert "switch it on first" in admin.post(f"/settings/webhooks/{hook.pk}/test/", follow=True).content.decode()
    admin.post(f"/settings/webhooks/{hook.pk}/on/")
    assert WebhookRecord.objects.get().is_active


def test_an_address_that_cannot_be_told_is_said_at_its_field(admin: Client) -> None:
    refused = admin.post("/settings/webhooks/", {**HOOK, "url": "http://10.0.0.1/"})
    assert refused.status_code == 422
    assert "EVALBOARD_WEBHOOK_ALLOW_PRIVATE" in refused.content.decode()


def test_only_admins_see_webhooks(engineer: Client, admin: Client) -> None:
    assert engineer.get("/settings/webhooks/").status_code == 403
    assert "/settings/webhooks/" not in engineer.get("/settings/").content.decode()
    assert "/settings/webhooks/" in admin.get("/settings/").content.decode()


@pytest.mark.parametrize("path", ["/settings/tokens/", "/settings/webhooks/"])
def test_what_people_typed_is_text(admin: Client, path: str) -> None:
    evil = "<script>alert(1)</script>\u202e"
    create_token(
        user=build.user("eve"), name=evil, scopes=["read"], expires_at=build.timezone.now() + build.timedelta(days=1)
    )
    admin.post("/settings/webhooks/", {**HOOK, "url": "https://h.example/<script>alert(1)</script>"})
    WebhookRecord.objects.update(last_error=evil)
    page = admin.get(path).content.decode()
    assert "<script>alert" not in page
    assert "\u202e" not in page


@pytest.mark.nightly
def test_the_pages_ask_as_often_for_many_as_for_one(admin: Client, django_assert_max_num_queries: Any) -> None:
    for _ in range(6):
        admin.post("/settings/webhooks/", HOOK)
        admin.post("/settings/tokens/", token_form())
    webhooks.notify(event="run.failed", payload={})
    for path in ("/settings/tokens/", "/settings/webhooks/"):
        with django_assert_max_num_queries(7):
            assert admin.get(path).status_code == 200
