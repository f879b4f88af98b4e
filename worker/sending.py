"""Send the outbox's messages: next to the worker on one machine, next to the scheduler in a team."""

import logging

from standardwebhooks import Webhook

from runs.store import database_now
from runs.webhooks import Delivery, outbox
from runs.webhooks.read import MAILTO
from worker.beside import BesideThread
from worker.post import NotTaken, mail, post

logger = logging.getLogger(__name__)


def sending() -> BesideThread:
    """Return the thread that sends what waits: a receiver may be slow."""
    return BesideThread("outbox", send_next, outbox.forget_old_messages, "A message could not be sent")


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
