"""People of an installation: who may sign in, as what, and until when."""

from typing import Any

from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.password_validation import validate_password
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from evalboard.core.errors import InvalidInput
from runs.access.roles import ROLES, grant_role
from runs.models import Token
from runs.store import require_row


@transaction.atomic
def add_person(*, name: str, role: str, password: str | None = None) -> tuple[Any, bool]:
    """Add a person with this role. If known, change role and password, and return False.

    Without a password one-time links are their only way in, or the password that they have already.
    Raises InvalidInput with fields.
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
    person.is_active = True
    person.save()
    grant_role(user=person, role=role)
    return person, is_new


@transaction.atomic
def remove_person(*, name: str) -> None:
    """Remove a person's access: password, links, sessions and tokens. Their runs stay theirs.

    Adding them again brings none of these back: what signed them in before was signed with the password's hash, which
    is another one now. Raises NotFound.
    """
    person = require_row(
        get_user_model().objects.select_for_update().filter(username=name), f"There is no person named {name}."
    )
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


def end_sessions(*, person: Any) -> int:
    """Sign a person out everywhere; return how many sessions there were. Their tokens go on."""
    sessions = Session.objects.filter(expire_date__gt=timezone.now()).iterator(chunk_size=500)
    theirs = [row.pk for row in sessions if row.get_decoded().get(SESSION_KEY) == str(person.pk)]
    Session.objects.filter(pk__in=theirs).delete()
    return len(theirs)


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
