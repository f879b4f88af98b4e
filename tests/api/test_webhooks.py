"""Webhooks over the API."""

from typing import Any

import pytest

from runs.models import OutboxMessage, WebhookRecord
from runs.webhooks import webhooks
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db
ASKED = {"url": "https://hooks.example/evalboard", "events": ["run.failed", "release.decided"]}


def test_a_webhook_is_made_its_secret_shown_once_and_deleted(api: Api) -> None:
    made = api.post("/webhooks/", ASKED)
    assert made.status_code == 201
    body = made.json()
    assert body["secret"].startswith("whsec_")
    assert (body["events"], body["is_active"], body["messages"]) == (["release.decided", "run.failed"], True, [])
    [row] = api.get("/webhooks/").json()["results"]
    assert row == {name: value for name, value in body.items() if name != "secret"}
    assert api.get(f"/webhooks/{body['id']}/").json() == row
    assert api.delete(f"/webhooks/{body['id']}/").status_code == 204
    assert api.get("/webhooks/").json()["results"] == []
    assert api.get(f"/webhooks/{body['id']}/").status_code == api.delete(f"/webhooks/{body['id']}/").status_code == 404


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"url": "http://127.0.0.1/"}, "url"),
        ({"url": "http://localhost:8800/"}, "url"),
        ({"url": "http://0x7f000001/"}, "url"),
        ({"url": "http://169.254.169.254/latest/meta-data/"}, "url"),
        ({"url": "file:///etc/passwd"}, "url"),
        ({"url": ""}, "url"),
        ({"events": []}, "events"),
        ({"secret": "whsec_mine"}, "secret"),
    ],
)
def test_what_is_no_webhook_is_refused_by_its_field(api: Api, changes: dict[str, Any], field: str) -> None:
    refused = api.post("/webhooks/", {**ASKED, **changes})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])
    assert not WebhookRecord.objects.exists()


@pytest.mark.nightly
def test_there_are_not_more_of_them_than_a_run_may_write_messages_to(api: Api) -> None:
    for _ in range(webhooks.MAX_WEBHOOKS):
        assert api.post("/webhooks/", ASKED).status_code == 201
    assert api.post("/webhooks/", ASKED).status_code == 409


def test_its_last_messages_say_what_became_of_them(api: Api) -> None:
    hook = api.post("/webhooks/", ASKED).json()
    tested = api.post(f"/webhooks/{hook['id']}/test/")
    assert (tested.status_code, tested.json()["n_waiting"]) == (202, 1)
    for number in range(12):
        webhooks.notify(event="run.failed", payload={"id": str(number)})
    OutboxMessage.objects.filter(event="webhook.test").update(status="failed", last_error="It answered 500.")
    messages = api.get(f"/webhooks/{hook['id']}/").json()["messages"]
    assert len(messages) == 10
    assert {message["event"] for message in messages} == {"run.failed"}
    OutboxMessage.objects.exclude(event="webhook.test").delete()
    [message] = api.get(f"/webhooks/{hook['id']}/").json()["messages"]
    assert (message["status"], message["last_error"], message["next_attempt_at"]) == (
        "failed",
        "It answered 500.",
        None,
    )


def test_one_that_is_off_is_switched_on_again(api: Api) -> None:
    hook = api.post("/webhooks/", ASKED).json()
    WebhookRecord.objects.update(is_active=False, n_failures=5, last_error="It answered 500.")
    assert api.post(f"/webhooks/{hook['id']}/test/").status_code == 409
    on = api.post(f"/webhooks/{hook['id']}/on/").json()
    assert (on["is_active"], on["n_failures"], on["last_error"]) == (True, 0, "")


def test_lists_ask_as_often_for_many_as_for_one(api: Api, django_assert_num_queries: Any) -> None:
    def queries(n: int) -> int:
        for _ in range(n):
            api.post("/webhooks/", ASKED)
        webhooks.notify(event="run.failed", payload={})
        with django_assert_num_queries(6, exact=False) as found:
            assert api.get("/webhooks/").status_code == 200
        return len(found)

    assert queries(1) == queries(8)
