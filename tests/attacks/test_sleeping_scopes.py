"""A viewer asks for a token with the scope `admin`, which does nothing until they are promoted, and then does all."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from evalboard.core.errors import InvalidInput
from runs.access import create_token
from runs.models import Token
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db
ROLES = {
    "viewer": {"read"},
    "engineer": {"read", "run"},
    "release manager": {"read", "run", "sign"},
    "admin": {"read", "run", "sign", "admin"},
}


def until() -> Any:
    return timezone.now() + timedelta(days=30)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("scope", ["read", "run", "sign", "admin"])
def test_a_token_is_born_with_what_its_person_may_do_now(role: str, scope: str) -> None:
    person = build.user("eve", role)
    asked = {"user": person, "name": "later", "scopes": ["read", scope], "expires_at": until()}
    if scope in ROLES[role]:
        assert create_token(**asked)[0].scopes == sorted({"read", scope})
        return
    with pytest.raises(InvalidInput) as refused:
        create_token(**asked)
    assert refused.value.fields["scopes"].startswith("Only what eve may do now: read")
    assert not Token.objects.exists()


def by_rest(person: Any) -> int:
    client = Api(build.token(person, "read", "admin"))
    asked = {"name": "later", "scopes": ["read", "admin"], "expires_at": until().isoformat()}
    return int(client.post("/tokens/", asked).status_code)


def by_session(person: Any) -> int:
    client = Client()
    client.force_login(person)
    asked = {"name": "later", "scopes": ["admin"], "expires_at": until().isoformat()}
    return client.post("/api/v1/tokens/", asked, content_type="application/json").status_code


def by_page(person: Any) -> int:
    client = Client()
    client.force_login(person)
    return client.post("/settings/tokens/", {"name": "later", "scopes": ["admin"], "days": "30"}).status_code


def by_command(person: Any) -> int:
    with pytest.raises(CommandError, match="Only what eve may do now: read"):
        call_command("add_token", "eve", "later", "--scope", "admin")
    return 400


@pytest.mark.parametrize(("way", "status"), [(by_rest, 400), (by_session, 400), (by_page, 422), (by_command, 400)])
def test_no_way_makes_one_that_sleeps(way: Callable[[Any], int], status: int) -> None:
    assert way(build.user("eve", "viewer")) == status
    assert not Token.objects.filter(name="later").exists()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/people/rita/link/", {}),
        ("/people/", {"name": "zoe", "role": "release manager"}),
        ("/people/eve/role/", {"role": "release manager"}),
    ],
)
def test_a_token_gives_no_person_more_than_itself(path: str, body: dict[str, str]) -> None:
    """A link signs in as its person: a token that may not sign would sign by another's session."""
    build.user("rita", "release manager")
    build.user("eve", "engineer")
    ada = build.user("ada", "admin")
    refused = Api(build.token(ada, "admin")).post(path, body)
    assert (refused.status_code, refused.json()["code"]) == (403, "refused")
    assert "read, run, sign" in refused.json()["detail"] or "lacks the scopes sign" in refused.json()["detail"]
    assert "/signin/" not in refused.content.decode()
    assert Api(build.token(ada, "read", "run", "sign", "admin")).post(path, body).status_code in (200, 201)
