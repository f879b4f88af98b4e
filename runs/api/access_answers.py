"""What the API answers of tokens and webhooks, as types; see answers.py."""

from typing import Annotated, NotRequired, TypedDict

from runs.access import SCOPES
from runs.api.answers import Address, Count, Id, Instant
from runs.api.schema_types import says
from runs.models import OutboxMessage
from runs.services.webhooks import EVENTS, TEST

Scope = Annotated[str, says(enum=SCOPES)]
Event = Annotated[str, says(enum=(*EVENTS,))]
AnyEvent = Annotated[str, says(enum=(*EVENTS, TEST))]


class ApiToken(TypedDict):
    """A token without its secret; `label` is the beginning of it, by which one that was found is known again."""

    id: Id
    label: str
    name: str
    person: str
    scopes: list[Scope]
    state: Annotated[str, says(enum=("active", "expired", "revoked"))]
    created_at: Instant
    expires_at: Instant
    last_used_at: Instant | None
    revoked_at: Instant | None
    secret: NotRequired[Annotated[str, says(description="the token itself, this once")]]


class WebhookMessage(TypedDict):
    """One message; `next_attempt_at` is null where it is not tried again."""

    id: str
    event: AnyEvent
    status: Annotated[str, says(enum=OutboxMessage.Status.values)]
    n_attempts: Count
    last_error: str
    created_at: Instant
    delivered_at: Instant | None
    next_attempt_at: Instant | None


class Webhook(TypedDict):
    """An address that is told of events, with its last messages, newest first."""

    id: Id
    url: Address
    events: list[Event]
    created_by: str
    created_at: Instant
    is_active: bool
    n_failures: Annotated[int, says(minimum=0, description="messages given up on, in a row")]
    n_waiting: Count
    delivered_at: Instant | None
    last_error: str
    messages: list[WebhookMessage]
    secret: NotRequired[Annotated[str, says(description="signs each message; shown this once")]]
