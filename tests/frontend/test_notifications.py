"""What a person follows, on its page and by the buttons of the others."""

from html import unescape
from typing import Any

import pytest
from django.test import Client

from runs.models import FollowRecord, OutboxMessage, WebhookRecord
from runs.webhooks.follows import NO_EMAIL, create_address
from runs.webhooks.webhooks import MAX_TESTS
from tests import build
from tests.nightly import few

pytestmark = pytest.mark.django_db
PAGE = "/settings/notifications/"


def shown(answer: Any) -> str:
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def test_a_button_follows_and_leads_to_the_addresses_first(viewer: Client) -> None:
    run = build.run(repeats=1)
    page = f"/runs/{run.pk}/"
    assert "Tell me when done" in shown(viewer.get(page))
    for spelling in (f"0{run.pk}", str(run.pk).translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩"))):
        assert viewer.post("/follows/", {"kind": "run", "name": spelling}).status_code == 404
    first = viewer.post("/follows/", {"kind": "run", "name": str(run.pk)})
    assert first["Location"] == PAGE
    assert f"You follow run {run.pk}. Add an address below" in shown(viewer.get(PAGE))
    followed = FollowRecord.objects.get()
    create_address(url="https://chat.example.com/hook", person=followed.person)
    assert viewer.post("/follows/", {"kind": "suite", "name": "colours"})["Location"] == "/suites/colours/"
    assert "Following" in shown(viewer.get("/suites/colours/"))
    stopped = viewer.post(f"/follows/{followed.pk}/stop/", {"next": page})
    assert stopped["Location"] == page
    elsewhere = viewer.post(f"/follows/{FollowRecord.objects.get().pk}/stop/", {"next": "https://eve.example.com/"})
    assert elsewhere["Location"] == PAGE


@pytest.mark.parametrize("place", few(["/suites/colours/", "/suites/colours/cases/a/b%20c/", "/endpoints/local/"], 1))
def test_what_goes_on_for_ever_is_followed(viewer: Client, place: str) -> None:
    build.run(repeats=1)
    assert ">Follow</button>" in shown(viewer.get(place))


def test_the_page_says_what_an_administrator_must_set(viewer: Client, settings: Any) -> None:
    assert NO_EMAIL in shown(viewer.get(PAGE))
    refused = viewer.post(PAGE, {"address": "ada@example.com"})
    assert (refused.status_code, NO_EMAIL in unescape(refused.content.decode())) == (422, True)
    settings.EMAIL_HOST = "mail.example.com"
    assert NO_EMAIL not in shown(viewer.get(PAGE))
    assert viewer.post(PAGE, {"address": "ada@example.com"}).status_code == 302
    assert WebhookRecord.objects.get().url == "mailto:ada@example.com"


def test_an_address_is_tested_and_deleted_by_its_person_alone(client_of: Any, viewer: Client) -> None:
    viewer.post(PAGE, {"address": "https://chat.example.com/T0/secret"})
    address = WebhookRecord.objects.get()
    assert "https://chat.example.com/***cret" in shown(viewer.get(PAGE))
    other = client_of("admin")
    assert "chat.example.com" not in shown(other.get(PAGE)) + shown(other.get("/settings/webhooks/"))
    for act in ("test", "on", "delete"):
        assert other.post(f"{PAGE}{address.pk}/{act}/").status_code == 404
    viewer.post(f"{PAGE}{address.pk}/test/")
    assert OutboxMessage.objects.get().payload["data"]["url"] == PAGE
    flood = [viewer.post(f"{PAGE}{address.pk}/test/", follow=True) for _ in range(MAX_TESTS)]
    assert "Send the next one a minute later." in shown(flood[-1])
    assert OutboxMessage.objects.count() == MAX_TESTS
    viewer.post(f"{PAGE}{address.pk}/delete/")
    assert not WebhookRecord.objects.exists()
