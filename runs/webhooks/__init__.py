"""Messages to other systems: the outbox, and who gets which."""

from runs.webhooks import follows, news, outbox
from runs.webhooks.follows import tell_followers
from runs.webhooks.outbox import OFF_AFTER, Delivery
from runs.webhooks.read import WEBHOOK_ORDERS, webhook_rows
from runs.webhooks.web_address import host_problem
from runs.webhooks.webhooks import EVENTS, LONGEST_URL, create_webhook, delete_webhook, send_test, switch_on

__all__ = [
    "EVENTS",
    "LONGEST_URL",
    "OFF_AFTER",
    "WEBHOOK_ORDERS",
    "Delivery",
    "create_webhook",
    "delete_webhook",
    "follows",
    "host_problem",
    "news",
    "outbox",
    "send_test",
    "switch_on",
    "tell_followers",
    "webhook_rows",
]
