"""Notify people of what they follow, at their own addresses, through the outbox of webhooks."""

import base64
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.signing import BadSignature, Signer
from django.core.validators import validate_email
from django.db import models, transaction
from django.db.models import Q

from evalboard.contract import access as contract
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.path_converters import escape_dots
from runs.models import (
    Case,
    EndpointRecord,
    ExperimentRecord,
    FollowRecord,
    ForcedScoringRecord,
    OutboxMessage,
    ProbeRecord,
    ReleaseRecord,
    ReplayRecord,
    RunRecord,
    Suite,
    WebhookRecord,
)
from runs.store import require_row
from runs.webhooks.read import MAILTO
from runs.webhooks.webhooks import SECRET_PREFIX, make_message, page_url, url_problem

MAX_ADDRESSES = 5
MAX_FOLLOWS = 500
# Kind → the record, the field that names one, and its page. A case is named by its suite too: "colours/sky".
SUBJECTS: Mapping[str, tuple[type[models.Model], str, str]] = {
    "run": (RunRecord, "pk", "/runs/{}/"),
    "suite": (Suite, "slug", "/suites/{}/"),
    "case": (Case, "case_id", "/suites/{}/cases/{}/"),
    "endpoint": (EndpointRecord, "slug", "/endpoints/{}/"),
    "release": (ReleaseRecord, "pk", "/releases/{}/"),
    "probe": (ProbeRecord, "pk", "/probes/{}/"),
    "experiment": (ExperimentRecord, "pk", "/lab/{}/"),
    "replay": (ReplayRecord, "pk", "/replays/{}/"),
    "forced": (ForcedScoringRecord, "pk", "/forced/{}/"),
}
ID = re.compile(r"[1-9][0-9]{0,17}")  # one spelling for each: follows are looked for by the name
ENDS_ONCE = ("probe", "experiment", "replay", "forced")  # nothing more happens to them
NOT_FOLLOWED = (
    f"Must be one of: {', '.join(SUBJECTS)}. An import has ended when it is answered; follow its suite or a case."
)
NO_EMAIL = "E-mail is not set up. An administrator must set EVALBOARD_EMAIL_HOST and EVALBOARD_EMAIL_FROM."


def follow(*, kind: str, name: str, person: Any) -> FollowRecord:
    """Tell a person of a subject from now on; twice is once. name: its slug or id, of a case "suite/id".

    Raises InvalidInput with fields, NotFound, or Conflict where the person follows too much.
    """
    if kind not in SUBJECTS:
        raise InvalidInput("It cannot be followed.", fields={"kind": NOT_FOLLOWED})
    subject = require_row(named_rows(kind, name), f"There is no {kind} {name}.")
    if FollowRecord.objects.filter(person=person).count() >= MAX_FOLLOWS:
        raise Conflict(f"You follow {MAX_FOLLOWS} things already; stop following one that has ended.")
    followed, _ = FollowRecord.objects.get_or_create(
        person=person, kind=kind, subject=subject.pk, defaults={"name": name}
    )
    return followed


def named_rows(kind: str, name: str) -> models.QuerySet[Any]:
    """Return the rows of a kind and a name. A case has one for each version of its suite."""
    model, field, _ = SUBJECTS[kind]
    if kind == "case":  # the same row whatever versions of the suite come later
        suite, _, name = name.partition("/")
        return model._default_manager.filter(suite_version__suite__slug=suite, case_id=name).order_by("pk")
    value: Any = name if field == "slug" else int(name) if ID.fullmatch(name) else -1
    return model._default_manager.filter(**{field: value})


def page_path(kind: str, name: str) -> str:
    """Return the page of what a person follows."""
    return escape_dots(SUBJECTS[kind][2].format(*map(quote, name.split("/", 1))))


def unfollow(*, follow_id: int, person: Any) -> None:
    """Tell a person of a subject no more. Raises NotFound."""
    if FollowRecord.objects.filter(pk=follow_id, person=person).delete()[0] == 0:
        raise NotFound(f"You follow nothing with the id {follow_id}.")


def read_stop_link(token: str) -> FollowRecord | None:
    """Return what the link in an e-mail stops following; None where that ended.

    Raises NotFound where the link is not ours.
    """
    try:
        return FollowRecord.objects.filter(pk=int(_signer().unsign(token))).select_related("person").first()
    except BadSignature as problem:
        raise NotFound("This link is not complete, or not from here. Open it from the e-mail again.") from problem


def follow_rows(person: Any, **named: str) -> tuple[contract.Follow, ...]:
    """Return what a person follows, newest first. named: only that kind and name."""
    return tuple(map(follow_row, FollowRecord.objects.filter(person=person, **named).order_by("-id")))


def follow_row(row: FollowRecord) -> contract.Follow:
    """Return the contract of what a person follows."""
    return contract.Follow.from_record(row, id=str(row.pk), url=page_path(row.kind, row.name))


@transaction.atomic
def create_address(*, url: str, person: Any) -> tuple[WebhookRecord, str]:
    """Store a person's address, https://… or mailto:…; only here the signing secret is returned.

    Raises InvalidInput with fields, or Conflict beyond MAX_ADDRESSES.
    """
    if problem := _email_problem(url.removeprefix(MAILTO)) if url.startswith(MAILTO) else url_problem(url):
        raise InvalidInput("The address is not valid.", fields={"url": problem})
    if WebhookRecord.objects.filter(owner=person).count() >= MAX_ADDRESSES:
        raise Conflict(f"You have {MAX_ADDRESSES} addresses already; delete one first.")
    secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
    return WebhookRecord.objects.create(url=url, secret=secret, events=[], created_by=person, owner=person), secret


def tell_followers(subjects: Iterable[tuple[str, int]], *, text: str, path: str, person: int | None = None) -> None:
    """Write a message to each address of everybody who follows one of these, in the caller's transaction.

    person: the only one to tell, by id.
    """
    any_of = Q()
    for kind, subject in subjects:
        any_of |= Q(kind=kind, subject=subject)
    by_person: dict[int, FollowRecord] = {}
    for row in FollowRecord.objects.filter(any_of, **({} if person is None else {"person": person})).order_by("id"):
        by_person.setdefault(row.person_id, row)
    if not by_person:
        return
    addresses = WebhookRecord.objects.filter(owner__in=by_person, is_active=True).order_by("id").defer("secret")
    followed = ((address, by_person[address.owner_id or 0]) for address in addresses)
    OutboxMessage.objects.bulk_create(
        make_message(address, contract.FOLLOWED, _payload(row, path, address), text) for address, row in followed
    )
    FollowRecord.objects.filter(any_of, kind__in=ENDS_ONCE).delete()


def _payload(row: FollowRecord, path: str, address: WebhookRecord) -> dict[str, Any]:
    """Return the data of a message. Only a mailbox gets a link that needs no sign-in."""
    is_mail = address.url.startswith(MAILTO)
    stop = f"/unsubscribe/{_signer().sign(str(row.pk))}/" if is_mail else "/settings/notifications/"
    following = {"kind": row.kind, "name": row.name}
    return {"url": page_url(path), "following": following, "stop_url": page_url(stop)}


def _signer() -> Signer:
    return Signer(salt="unsubscribe")


def _email_problem(address: str) -> str | None:
    if not settings.EMAIL_HOST:
        return NO_EMAIL
    try:
        validate_email(address)
    except ValidationError:
        return "This is not an e-mail address."
    return None
