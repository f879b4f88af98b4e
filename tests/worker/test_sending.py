"""From a run's end to somebody's server: signed, tried again, given up, once for each sender that could send it."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from standardwebhooks import Webhook as Standard
from standardwebhooks import WebhookVerificationError

from evalboard.core.errors import InvalidInput, NotFound
from runs.models import OutboxMessage, RunRecord, Shard, WebhookRecord
from runs.run import cancel_run
from runs.webhooks import create_webhook, delete_webhook, outbox, send_test, switch_on, webhooks
from runs.work import rollup
from tests import build
from tests.receiver import Receiver, receiver, status
from tests.servers import free_port
from tests.worker.conftest import Start, Wait
from tests.worker.conftest import ended as has_ended
from worker.sending import send_next, sending

EVERY = tuple(webhooks.EVENTS)


@pytest.fixture(autouse=True)
def is_let(settings: Any) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = frozenset({"127.0.0.1"})
    settings.PUBLIC_ADDRESS = "https://evalboard.example.com"


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def webhook(url: str, *events: str) -> tuple[WebhookRecord, str]:
    person = (
        build.user("root", "admin")
        if not WebhookRecord.objects.exists()
        else WebhookRecord.objects.earliest("id").created_by
    )
    return create_webhook(url=url, events=events or EVERY, user=person)


def tell(n: int = 1) -> None:
    for number in range(n):
        webhooks.notify(event="run.failed", payload={"id": str(number), "url": "/runs/0/"}, text="It failed.")


def is_due() -> None:
    """Let the pauses pass."""
    OutboxMessage.objects.update(next_at=Now())


def database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        at: datetime = cursor.fetchone()[0]
        return at


def ended(run: RunRecord, shards: str) -> RunRecord:
    Shard.objects.filter(repeat__run=run).update(status=shards)
    for repeat in run.repeats.all():
        rollup.finish_repeat(repeat_id=repeat.pk)
    run.refresh_from_db()
    return run


@pytest.mark.django_db
def test_a_message_is_signed_as_the_standard_says(there: Receiver) -> None:
    _, secret = webhook(there.url)
    tell()
    assert send_next()
    (got,) = there.received
    said = Standard(secret).verify(got.body, got.headers)
    assert (said["type"], said["text"], said["data"]["id"]) == ("run.failed", "It failed. /runs/0/", "0")
    assert got.headers["Content-Type"] == "application/json"
    other = create_webhook(url=there.url, events=EVERY, user=WebhookRecord.objects.get().created_by)[1]
    with pytest.raises(WebhookVerificationError):
        Standard(other).verify(got.body, got.headers)
    with pytest.raises(WebhookVerificationError):
        Standard(secret).verify(got.body.replace(b"failed", b"fooled"), got.headers)
    assert OutboxMessage.objects.get().status == "delivered"
    assert not send_next()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("shards", "event"), [("failed", "run.failed"), ("finished", "run.incomplete"), ("cancelled", None)]
)
def test_a_runs_end_is_told(there: Receiver, shards: str, event: str | None) -> None:
    """No response was recorded, so a run whose shards all finished is incomplete."""
    webhook(there.url)
    run = build.run(labels={"commit": "8f21c0e"})
    if shards == "cancelled":
        cancel_run(run_id=run.pk)
    run = ended(run, shards)
    if event is None:
        assert not OutboxMessage.objects.exists()
        return
    assert send_next()
    said = json.loads(there.received[0].body)
    assert (said["type"], said["data"]["id"]) == (event, str(run.pk))
    assert said["data"]["suite"] == {"slug": "colours", "version": 1}
    assert said["data"]["labels"] == {"commit": "8f21c0e"}
    assert said["data"]["url"] == f"https://evalboard.example.com/runs/{run.pk}/"
    assert said["text"].startswith(f"Run {run.pk} of colours on local ended: {run.status}.")


@pytest.mark.django_db
def test_a_finished_run_is_told(there: Receiver) -> None:
    webhook(there.url, "run.finished")
    run = build.finished_run()
    tell()
    (message,) = OutboxMessage.objects.all()
    assert (message.event, message.payload["data"]["id"]) == ("run.finished", str(run.pk))
    assert message.payload["data"]["finished_at"].endswith("Z")


@pytest.mark.django_db
def test_only_what_was_asked_for_is_told(there: Receiver) -> None:
    webhook(there.url, "release.decided")
    tell()
    assert not OutboxMessage.objects.exists()
    with pytest.raises(KeyError):
        webhooks.notify(event="run.started", payload={})


@pytest.mark.django_db
def test_a_message_is_of_the_transaction_that_it_tells_of(there: Receiver) -> None:
    webhook(there.url)
    with transaction.atomic():
        tell()
        transaction.set_rollback(True)
    assert not send_next()
    assert there.received == []


@pytest.mark.django_db
def test_a_receiver_that_was_away_gets_the_message_under_the_same_id() -> None:
    port = free_port()
    _, secret = webhook(f"http://127.0.0.1:{port}/")
    tell()
    assert send_next()
    message = OutboxMessage.objects.get()
    assert (message.status, message.n_attempts) == ("waiting", 1)
    assert "No connection to 127.0.0.1" in message.last_error
    assert not send_next(), "it waits before it is tried again"
    is_due()
    with receiver(status(500), status(204), port=port) as there:
        assert send_next()
        is_due()
        assert send_next()
        first, second = there.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == message.message_id
    assert first.body == second.body
    Standard(secret).verify(second.body, second.headers)
    message.refresh_from_db()
    assert (message.status, message.n_attempts, message.last_error) == ("delivered", 3, "")
    assert WebhookRecord.objects.get().last_error == ""


@pytest.mark.django_db
def test_each_pause_is_longer_and_the_last_is_followed_by_giving_up() -> None:
    with receiver(status(500)) as there:
        webhook(there.url)
        tell()
        for pause in outbox.PAUSES:
            before = database_time()
            assert send_next()
            message = OutboxMessage.objects.get()
            assert message.status == "waiting"
            assert before <= message.next_at - pause <= database_time()
            is_due()
        assert send_next()
        message = OutboxMessage.objects.get()
    assert len(there.received) == len(outbox.PAUSES) + 1
    assert (message.status, message.last_error) == ("failed", "It answered 500.")
    assert WebhookRecord.objects.get().n_failures == 1


@pytest.mark.django_db
def test_a_message_of_yesterday_is_given_up(there: Receiver) -> None:
    there._answers[:] = [status(503)]
    webhook(there.url)
    tell()
    OutboxMessage.objects.update(created_at=Now() - outbox.GIVEN_UP_AFTER)
    assert send_next()
    assert OutboxMessage.objects.get().status == "failed"


@pytest.mark.django_db
def test_after_too_many_given_up_in_a_row_a_webhook_is_switched_off() -> None:
    with receiver(status(503)) as there:
        hook, _ = webhook(there.url)
        tell(outbox.OFF_AFTER + 2)
        OutboxMessage.objects.update(created_at=Now() - outbox.GIVEN_UP_AFTER)
        while send_next():
            is_due()
    assert len(there.received) == outbox.OFF_AFTER
    hook.refresh_from_db()
    assert (hook.is_active, hook.last_error) == (False, "It answered 503.")
    assert not OutboxMessage.objects.filter(status="waiting").exists()
    assert OutboxMessage.objects.filter(last_error="The webhook was switched off.").count() == 2
    tell()
    assert not OutboxMessage.objects.filter(status="waiting").exists(), "nothing is written for one that is off"
    switch_on(webhook_id=hook.pk)
    tell()
    with receiver(port=there.port):
        assert send_next()
    hook.refresh_from_db()
    assert (hook.is_active, hook.n_failures, hook.last_error) == (True, 0, "")


@pytest.mark.django_db
def test_one_that_is_gone_is_switched_off_at_once() -> None:
    with receiver(status(410)) as there:
        hook, _ = webhook(there.url)
        tell()
        assert send_next()
    hook.refresh_from_db()
    assert (hook.is_active, hook.last_error) == (False, "It answered 410.")


@pytest.mark.django_db
def test_a_dead_receiver_does_not_hold_up_the_others(there: Receiver) -> None:
    webhook(f"http://127.0.0.1:{free_port()}/")
    webhook(there.url)
    tell(10)
    for _ in range(11):
        assert send_next()
    assert len(there.received) == 10
    assert not send_next(), "what else waits for the dead one waits a little"


@pytest.mark.django_db(transaction=True)
def test_two_senders_do_not_send_one_message_twice(there: Receiver) -> None:
    webhook(there.url)
    tell(20)
    with sending(), sending(), sending():
        done = threading.Event()
        for _ in range(200):
            if not OutboxMessage.objects.filter(status="waiting").exists():
                break
            done.wait(0.05)
    ids = [got.headers["webhook-id"] for got in there.received]
    assert len(ids) == len(set(ids)) == 20


@pytest.mark.django_db
def test_a_sender_that_died_leaves_its_message_to_the_next(there: Receiver) -> None:
    webhook(there.url)
    tell()
    died = outbox.claim_message()
    assert died is not None
    assert not send_next(), "it is the first sender's for a minute"
    is_due()
    assert send_next()
    # Had the first one only slept, what it says now is of no account.
    outbox.record_failure(message=died.message, attempt=died.attempt, error="late")
    assert OutboxMessage.objects.get().status == "delivered"
    assert WebhookRecord.objects.get().last_error == ""


@pytest.mark.django_db
def test_a_private_address_is_not_reached_by_a_message_either(there: Receiver, settings: Any) -> None:
    """Allowed when the webhook was made, and not any more."""
    webhook(there.url)
    settings.WEBHOOK_ALLOW_PRIVATE = frozenset()
    tell()
    assert send_next()
    assert there.received == []
    assert "not on the open internet" in WebhookRecord.objects.get().last_error


@pytest.mark.django_db
def test_a_test_message_says_that_it_works(there: Receiver) -> None:
    hook, _ = webhook(there.url, "run.failed")
    send_test(webhook_id=hook.pk)
    assert send_next()
    assert json.loads(there.received[0].body)["type"] == "webhook.test"


@pytest.mark.django_db
def test_what_nobody_tries_any_more_is_forgotten_after_a_month(there: Receiver) -> None:
    webhook(there.url)
    tell(2)
    assert send_next()
    OutboxMessage.objects.update(created_at=Now() - outbox.KEPT - timedelta(days=1))
    outbox.forget_old_messages()
    assert [row.status for row in OutboxMessage.objects.all()] == ["waiting"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "file:///etc/passwd",
        "https://",
        "example.com/hook",
        "https://ada:secret@example.com/",
        "https://example.com/#part",
        "https://exa mple.com/",
        "https://example.com:99999/",
        "https://bücher.example/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "https://example.com/" + "a" * 500,
    ],
)
def test_an_address_that_cannot_be_told_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        create_webhook(url=url, events=EVERY, user=build.user("root", "admin"))
    assert set(wrong.value.fields) == {"url"}


@pytest.mark.django_db
def test_a_webhook_is_told_of_events_that_there_are() -> None:
    for events in ([], ["run.started"], ["webhook.test"]):
        with pytest.raises(InvalidInput, match="not valid"):
            create_webhook(url="https://example.com/", events=events, user=build.user(str(events), "admin"))


@pytest.mark.django_db
def test_a_deleted_webhook_is_told_nothing(there: Receiver) -> None:
    hook, _ = webhook(there.url)
    tell()
    delete_webhook(webhook_id=hook.pk)
    assert not send_next()
    with pytest.raises(NotFound):
        delete_webhook(webhook_id=hook.pk)


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_a_run_that_a_worker_finished_is_told_in_both_set_ups(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, setup: dict[str, str], there: Receiver
) -> None:
    _, secret = webhook(there.url)
    run = new_run(["say blue"] * 3, repeats=1)
    start_worker(EVALBOARD_WEBHOOK_ALLOW_PRIVATE="127.0.0.1")
    if setup["REDIS_URL"]:
        wait_until(lambda: has_ended(run), "the run ends")
        assert there.received == [], "a team's workers have no way out"
        start_worker("--scheduler", EVALBOARD_WEBHOOK_ALLOW_PRIVATE="127.0.0.1")
    wait_until(lambda: there.received, "the message arrives")
    said = Standard(secret).verify(there.received[0].body, there.received[0].headers)
    assert (said["type"], said["data"]["id"]) == ("run.finished", str(run.pk))
