"""A viewer asks for a token with the scope `admin`, which does nothing until they are promoted, and then does all."""

import importlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from evalboard.core.errors import InvalidInput
from runs.access import create_token, grant_role
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


def test_one_that_sleeps_since_before_never_wakes() -> None:
    eve, ada = build.user("eve", "viewer"), build.user("ada", "admin")
    secret = build.token(eve, "read", "admin")
    build.token(ada, "read", "admin")
    importlib.import_module("runs.migrations.0016_scopes_at_birth").cut(apps, None)
    assert [token.scopes for token in Token.objects.order_by("pk")] == [["read"], ["admin", "read"]]
    grant_role(user=eve, role="admin")
    assert Api(secret).get("/runs/").status_code == 200
    assert Api(secret).get("/webhooks/").status_code == 403
