"""Tokens and webhooks in a real browser: shown once and copied, quiet, fitting, and without a serious barrier."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone
from playwright.sync_api import expect

from runs.access import create_token, grant_role, revoke_token, use_token
from runs.models import OutboxMessage, Token
from runs.webhooks import create_webhook, outbox, webhooks
from tests.browser import looks

pytestmark = pytest.mark.browser


@pytest.fixture
def admin(watch):
    """Open a watched page as an admin."""

    def signed_in(**options):
        watched = watch(**options)
        person = get_user_model().objects.get(username="mira")
        grant_role(user=person, role="admin")
        return watched, person

    return signed_in


def test_a_token_is_made_copied_and_revoked(admin):
    watched, _ = admin(permissions=["clipboard-read", "clipboard-write"])
    page = watched.open("/settings/tokens/")
    page.get_by_label("Purpose").fill("nightly")
    page.get_by_label("read: look at everything").check()
    page.get_by_role("button", name="Create a token").click()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    secret = page.evaluate("navigator.clipboard.readText()")
    token = Token.objects.get()
    assert use_token(secret=secret) == token
    page.get_by_text("Revoke…").click()
    page.get_by_role("button", name="Revoke nightly now").click()
    expect(page.get_by_text("Token nightly was revoked")).to_be_visible()
    assert use_token(secret=secret) is None
    watched.check()


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_the_pages_are_quiet_fit_and_have_no_barrier(admin, theme, width):
    watched, person = admin(theme=theme, width=width)
    until = timezone.now() + timedelta(days=7)
    for name in ("nightly", "x" * 80):
        create_token(user=person, name=name, scopes=["read", "run"], expires_at=until)
    revoke_token(token_id=Token.objects.earliest("id").pk, user=person)
    address = "https://hooks.example/" + "long/" * 60
    create_webhook(url=address, events=list(webhooks.EVENTS), user=person)
    for _ in range(2):
        webhooks.notify(event="run.failed", payload={})
    first = OutboxMessage.objects.earliest("id")
    outbox.record_failure(message=first.pk, attempt=0, error="It answered 410. " + "x" * 400, status=410)
    barriers = []
    for path in ("/settings/tokens/", "/settings/webhooks/", "/login/"):
        watched.open(path)
        assert watched.overflow() == 0, path
        watched.check()
        barriers += watched.barriers()
    assert barriers == []
