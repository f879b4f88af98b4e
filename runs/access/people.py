"""People of an installation: who may sign in, as what, and until when."""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from sesame.utils import get_query_string

from evalboard.core.errors import Conflict, InvalidInput, Refused
from runs.access.roles import ROLES, grant_role, scopes_of
from runs.access.sessions import end_sessions
from runs.models import AuditLineRecord, Token
from runs.store import require_row


@transaction.atomic
def add_person(*, name: str, role: str, password: str | None = None) -> tuple[Any, bool]:
    """Add a person with this role. If known, change role and password, and return False.

    Without a password one-time links are their only way in, or the password that they have already.
    Raises InvalidInput with fields, or Conflict for the only admin, who stays one.
    """
    user_model = get_user_model()
    person = user_model.objects.filter(username=name).first()
    is_new = person is None
    person = person or user_model(username=name)
    if problems := _problems(person, role, password):
        raise InvalidInput("The person cannot be added.", fields=problems)
    if password is not None:
        person.set_password(password)
    elif is_new:
        person.set_unusable_password()
    if not is_new and role != "admin":
        _require_other_admin(person)
    person.is_active = True
    person.save()
    grant_role(user=person, role=role)
    return person, is_new


@transaction.atomic
def remove_person(*, name: str) -> None:
    """Remove a person's access: password, links, sessions and tokens. Their runs stay theirs.

    Adding them again brings none of these back: what signed them in before was signed with the password's hash, which
    is another one now. Raises NotFound, or Conflict for the only admin.
    """
    person = _require_active(name)
    _require_other_admin(person)
    person.is_active = False
    person.set_unusable_password()  # a random one
    person.save(update_fields=["is_active", "password"])
    Token.objects.filter(user=person).delete()
    end_sessions(person=person)


def use_link(*, person: Any) -> bool:
    """Use up the one-time link that just identified a person. Return False if it was used meanwhile.

    A link is signed with the time of the last sign-in, so one conditional write of it uses up the link. `person` is as
    it was read when the link was checked.
    """
    unused = get_user_model().objects.filter(pk=person.pk, is_active=True, password=person.password)
    return unused.filter(last_login=person.last_login).update(last_login=Now()) == 1


@transaction.atomic
def invite_person(*, name: str, role: str, by: Token | None = None) -> Any:
    """Add a person, or let one who was removed in again. Raises Conflict for a name in use.

    by: the token that does it, if one does. Raises InvalidInput with fields, or Refused, too.
    """
    _require_scopes(by, ROLES.get(role, frozenset()))
    if get_user_model().objects.filter(username=name, is_active=True).exists():
        raise Conflict(f"{name} is there already; change their role, or make a sign-in link for them.")
    person, _ = add_person(name=name, role=role)
    return person


@transaction.atomic
def change_role(*, name: str, role: str, by: Token | None = None) -> Any:
    """Give a person another role, at once in all their sessions and tokens.

    by: as in `invite_person`. Raises NotFound, InvalidInput, Refused, or Conflict for the only admin.
    """
    person = _require_active(name)
    if role not in ROLES:
        raise InvalidInput("The role is not known.", fields={"role": f"Must be one of: {', '.join(ROLES)}."})
    _require_scopes(by, ROLES[role] - scopes_of(person))
    if role != "admin":
        _require_other_admin(person)
    grant_role(user=person, role=role)
    return person


def write_link(*, name: str, by: Token | None = None) -> str:
    """Return the path of a link that signs a person in once, within a day. Raises NotFound, or Refused.

    The link is stored nowhere. A line of the audit trail says who made it; PostgreSQL adds the actor. by: as in
    `invite_person`.
    """
    person = _require_active(name)
    _require_scopes(by, scopes_of(person))
    AuditLineRecord.objects.create(act="link_made", kind="person", subject=str(person.pk), name=name)
    return f"/signin/{get_query_string(person)}"


def _require_scopes(by: Token | None, scopes: frozenset[str]) -> None:
    """Refuse to give a token a way to do what its own scopes leave out: the person's session would do it."""
    if by is not None and not scopes <= set(by.scopes):
        lacking = ", ".join(sorted(scopes - set(by.scopes)))
        raise Refused(f"This token lacks the scopes {lacking}, which the person would have. Use a token with them.")


def _require_active(name: str) -> Any:
    people = get_user_model().objects.filter(username=name, is_active=True)
    return require_row(people, f"There is no person named {name} who may sign in.")


def _require_other_admin(person: Any) -> None:
    """Refuse to take the last admin away. Two that are taken away at once wait for each other."""
    admins = get_user_model().objects.filter(Q(groups__name="admin") | Q(is_superuser=True), is_active=True)
    rows = get_user_model().objects.filter(pk__in=admins.values("pk")).select_for_update().order_by("pk")
    list(rows)  # waits; only another statement sees what the others changed meanwhile
    if set(admins.values_list("pk", flat=True)) == {person.pk}:
        raise Conflict(f"{person.get_username()} is the only admin. Make another person admin first.")


def _problems(person: Any, role: str, password: str | None) -> dict[str, str]:
    fields: dict[str, str] = {}
    try:
        person.clean_fields(exclude=["password"])
    except ValidationError:
        fields["name"] = "Use letters, digits and @ . + - _, at most 150."
    if role not in ROLES:
        fields["role"] = f"Must be one of: {', '.join(ROLES)}."
    if password is not None:
        try:
            validate_password(password, person)
        except ValidationError as weak:
            fields["password"] = " ".join(weak.messages)
    return fields
