"""Send the outbox's messages: next to the worker on one machine, next to the scheduler in a team."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, connections
from standardwebhooks import Webhook

from runs.store import database_now
from runs.webhooks import Delivery, outbox
from runs.webhooks.read import MAILTO
from worker.post import NotTaken, mail, post

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
FORGET_SECONDS = 3600.0


class Sender(threading.Thread):
    """A separate thread, because a receiver may be slow and must not delay shards or sweeps.

    Several senders on one database do no harm: a message is claimed before it is sent.
    """

    def __init__(self) -> None:
        super().__init__(name="outbox", daemon=True)
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End after the attempt under way, which `join` waits for."""
        self._stopped.set()

    def run(self) -> None:
        forgotten_at = float("-inf")
        while not self._stopped.wait(LOOK_SECONDS):
            try:
                while not self._stopped.is_set() and send_next():
                    pass
                if time.monotonic() - forgotten_at > FORGET_SECONDS:
                    forgotten_at = time.monotonic()
                    outbox.forget_old_messages()
            except DatabaseError as away:
                logger.warning("The database is away: %s", away)
                connections.close_all()
            except Exception:  # one bad row must not end the sender for all the others
                logger.exception("A message could not be sent")
        connections.close_all()


@contextmanager
def sending() -> Iterator[None]:
    """Send what waits for as long as the block lasts."""
    sender = Sender()
    sender.start()
    try:
        yield
    finally:
        sender.stop()
        sender.join()


def send_next() -> bool:
    """Claim one message and try it; False if none was due."""
    delivery = outbox.claim_message()
    if delivery is None:
        return False
    try:
        if delivery.url.startswith(MAILTO):
            mail(delivery.url.removeprefix(MAILTO), delivery.body)
        else:
            post(delivery.url, delivery.body.encode(), _headers(delivery))
    except NotTaken as why:
        logger.warning("Message %s was not taken, attempt %s: %s", delivery.message_id, delivery.attempt, why)
        outbox.record_failure(message=delivery.message, attempt=delivery.attempt, error=str(why), status=why.status)
    except Exception as fault:  # whatever it is, it costs this message an attempt and not the others theirs
        logger.exception("Message %s could not be sent", delivery.message_id)
        error = f"{type(fault).__name__}: {fault}"
        outbox.record_failure(message=delivery.message, attempt=delivery.attempt, error=error)
    else:
        outbox.record_delivery(message=delivery.message)
    return True


def _headers(delivery: Delivery) -> dict[str, str]:
    """Return the headers of Standard Webhooks, signed for each attempt since old signatures expire."""
    at = database_now()  # receivers refuse what is dated by a clock that is off
    return {
        "Content-Type": "application/json",
        "User-Agent": "Evalboard",
        "webhook-id": delivery.message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(delivery.secret).sign(delivery.message_id, at, delivery.body),
    }
