"""People of an installation: who may sign in, and as what."""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from evalboard.core.errors import InvalidInput, NotFound
from runs.access import ROLES, grant_role
from runs.models import Token


@transaction.atomic
def add_person(*, name: str, role: str, password: str | None = None) -> tuple[Any, bool]:
    """Let a person in with exactly this role; False if they were known, whose role and password then change.

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
    """Shut a person out at once, with their tokens; their runs stay theirs. Raises NotFound."""
    if not get_user_model().objects.filter(username=name).update(is_active=False):
        raise NotFound(f"There is nobody named {name}.")
    Token.objects.filter(user__username=name).delete()


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
