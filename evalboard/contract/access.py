"""Tokens, and webhooks with what became of their messages."""

from typing import Annotated

from evalboard.contract.base import Address, Contract, Count, Id, Instant, PageAddress, says

EVENTS = ("release.decided", "run.finished", "run.incomplete", "run.failed", "rotation.noticed", "audit.incident")
TEST = "webhook.test"
FOLLOWED = "followed"  # at an address of a person's own
KINDS_FOLLOWED = ("run", "suite", "case", "endpoint", "release", "probe", "experiment", "replay", "forced")

Scope = Annotated[str, says(enum=("read", "run", "sign", "admin"))]
Event = Annotated[str, says(enum=EVENTS)]
AnyEvent = Annotated[str, says(enum=(*EVENTS, TEST, FOLLOWED))]


class ApiToken(Contract):
    """A token without its secret. `label` is its first characters, to recognise a leaked one."""

    id: Id
    label: str
    name: str
    person: str
    scopes: tuple[Scope, ...]
    state: Annotated[str, says(enum=("active", "expired", "revoked"))]
    created_at: Instant
    expires_at: Instant
    last_used_at: Instant | None
    revoked_at: Instant | None


class NewApiToken(ApiToken):
    """A token as returned to the person who made it."""

    secret: Annotated[str, says(description="the token; shown only once")]


class Follow(Contract):
    """What you follow.

    Evalboard notifies you when it ends, another server answers, a case turns, or a verdict waits.
    """

    id: Id
    kind: Annotated[str, says(enum=KINDS_FOLLOWED)]
    name: Annotated[str, says(description="a slug or an id; of a case SUITE/ID")]
    created_at: Instant
    url: PageAddress


class WebhookMessage(Contract):
    """One message; `next_attempt_at` is null where it is not tried again."""

    id: str
    event: AnyEvent
    status: Annotated[str, says(enum=("waiting", "delivered", "failed"))]
    n_attempts: Count
    last_error: str
    created_at: Instant
    delivered_at: Instant | None
    next_attempt_at: Instant | None


class Webhook(Contract):
    """An address that receives events, with its last messages, newest first."""

    id: Id
    url: Address
    events: tuple[Event, ...]
    created_by: str
    created_at: Instant
    is_active: bool
    n_failures: Annotated[int, says(minimum=0, description="messages abandoned in a row")]
    n_waiting: Count
    delivered_at: Instant | None
    last_error: str
    messages: tuple[WebhookMessage, ...]


class NewWebhook(Webhook):
    """A webhook as returned to the person who made it."""

    secret: Annotated[str, says(description="the key that signs each message; shown only once")]


Role = Annotated[str, says(enum=("viewer", "engineer", "release manager", "admin"))]


class Person(Contract):
    """A person of the installation, and how they sign in: by password, SSO or a one-time link."""

    name: str
    role: Annotated[str, says(description="viewer, engineer, release manager or admin; empty: none, which reads")]
    is_active: Annotated[bool, says(description="false: they cannot sign in")]
    sign_in: Annotated[str, says(enum=("password", "sso", "link"))]
    created_at: Instant
    seen_at: Annotated[Instant | None, says(description="when they or a token of theirs last did something")]
    n_tokens: Annotated[Count, says(description="valid ones")]
    n_sessions: Count


class NewPerson(Person):
    """A person with a link that signs them in once, within a day."""

    link: Annotated[str, says(description="shown only once")]


class BrowserSession(Contract):
    """A browser in which a person is signed in. `id` is a digest, which the audit trail names too."""

    id: str
    person: str
    address: Annotated[str, says(description="where they signed in from; empty if not known")]
    began_at: Instant | None
    seen_at: Instant | None
    expires_at: Instant
