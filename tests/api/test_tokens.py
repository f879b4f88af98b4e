"""Tokens over the API: made once, listed without their secret, revoked; and nothing of them in any log."""

import hashlib
import io
import logging
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalboard.core.errors import InvalidInput
from runs.access import create_token, roles, tokens
from runs.models import Token
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db


def asked(**changes: Any) -> dict[str, Any]:
    until = (timezone.now() + timedelta(days=20)).isoformat()
    return {"name": "nightly", "scopes": ["read", "run"], "expires_at": until, **changes}


def session_of(person: Any) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(person)
    return client


def test_a_token_is_shown_once_and_works(api: Api) -> None:
    made = api.post("/tokens/", asked())
    assert made.status_code == 201
    assert made["Cache-Control"] == "private, no-store"
    secret = made.json()["secret"]
    assert Api(secret).get("/runs/").status_code == 200
    [row] = [row for row in api.get("/tokens/").json()["results"] if row["name"] == "nightly"]
    assert "secret" not in row
    assert {name: row[name] for name in ("person", "scopes", "state", "revoked_at")} == {
        "person": "root",
        "scopes": ["read", "run"],
        "state": "active",
        "revoked_at": None,
    }
    assert row["last_used_at"] is not None
    assert secret.startswith(row["label"] + "_")
    assert secret not in str(list(Token.objects.values()))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"name": 7}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["read", "rule"]}, "scopes.1"),
        ({"scopes": "read"}, "scopes"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "2126-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "tomorrow"}, "expires_at"),
        ({"expires_at": None}, "expires_at"),
        ({"person": "ada"}, "person"),
    ],
)
def test_what_is_no_token_is_refused_by_its_field(api: Api, changes: dict[str, Any], field: str) -> None:
    refused = api.post("/tokens/", asked(**changes))
    assert refused.status_code == 400
    assert list(refused.json()["fields"]) in ([field], [re.sub(r"\.(\d)", r"[\1]", field)])


def test_a_token_makes_none_that_may_do_more_or_hold_longer() -> None:
    person = build.user("root", "admin")
    until = timezone.now() + timedelta(days=10)
    secret = create_token(user=person, name="small", scopes=["read"], expires_at=until)[1]
    caller = Api(secret)
    soon = (until - timedelta(days=1)).isoformat()
    assert caller.post("/tokens/", asked(scopes=["read"], expires_at=soon)).status_code == 201
    for more in (asked(scopes=["read", "run"], expires_at=soon), asked(scopes=["read"])):
        assert (caller.post("/tokens/", more).status_code, Token.objects.count()) == (403, 2)


def test_a_revoked_token_is_refused_at_once_and_stays_in_the_list(api: Api) -> None:
    made = api.post("/tokens/", asked()).json()
    assert Api(made["secret"]).get("/runs/").status_code == 200
    assert api.delete(f"/tokens/{made['id']}/").status_code == 204
    assert Api(made["secret"]).get("/runs/").status_code == 401
    [row] = [row for row in api.get("/tokens/").json()["results"] if row["id"] == made["id"]]
    assert row["state"] == "revoked"
    assert api.delete(f"/tokens/{made['id']}/").status_code == 204, "again changes nothing"
    assert Token.objects.get(pk=made["id"]).revoked_at == datetime.fromisoformat(row["revoked_at"])


def test_a_token_revokes_itself_and_lesser_ones_only() -> None:
    person = build.user("root", "admin")
    build.token(person, "read", "admin")
    reader, other = build.token(person, "read"), build.token(person, "read")
    great, small, lesser = Token.objects.order_by("id")
    caller = Api(reader)
    assert caller.delete(f"/tokens/{great.pk}/").status_code == 403
    assert caller.delete(f"/tokens/{lesser.pk}/").status_code == 204
    assert caller.delete(f"/tokens/{small.pk}/").status_code == 204
    assert [Api(secret).get("/runs/").status_code for secret in (reader, other)] == [401, 401]


def test_people_see_and_revoke_their_own_and_admins_all() -> None:
    ada, grace, root = build.user("ada"), build.user("grace", "viewer"), build.user("root", "admin")
    build.token(ada)
    build.token(grace)
    hers = Token.objects.get(user=grace)
    assert [row["person"] for row in session_of(ada).get("/api/v1/tokens/").json()["results"]] == ["ada"]
    assert session_of(ada).delete(f"/api/v1/tokens/{hers.pk}/").status_code == 404
    seen = session_of(root).get("/api/v1/tokens/").json()["results"]
    assert [row["person"] for row in seen] == ["grace", "ada"]
    admin = Api(build.token(root, "read", "admin"))
    assert admin.delete(f"/tokens/{hers.pk}/").status_code == 204


def test_an_admin_whose_token_only_reads_sees_their_own() -> None:
    build.token(build.user("ada"))
    root = build.user("root", "admin")
    seen = Api(build.token(root, "read")).get("/tokens/").json()["results"]
    assert [row["person"] for row in seen] == ["root"]


def test_the_form_of_a_token_lets_scanners_know_it() -> None:
    for _ in range(50):
        secret = tokens._new_secret()
        found = tokens.FORM.fullmatch(secret)
        assert found is not None
        assert secret == tokens._dressed(found[1])
        changed = secret[:20] + ("a" if secret[20] != "a" else "b") + secret[21:]
        assert changed != tokens._dressed(tokens.FORM.fullmatch(changed)[1]), "the checksum tells"


def test_a_token_with_a_wrong_name_or_checksum_is_no_token() -> None:
    secret = build.token(build.user())
    assert Api(secret).get("/runs/").status_code == 200
    wrong_name = f"evb_{'0' * 8}{secret[12:]}"
    wrong_checksum = secret[:-6] + "000000"
    for changed in (wrong_name, wrong_checksum, secret[:-1], secret + "0", secret.upper()):
        assert Api(changed).get("/runs/").status_code == 401


def test_a_token_of_before_the_form_was_keeps_working() -> None:
    old = "evb_Jx0-9_kTqk3mX0m6vUeJ1uPzP0oG4m4m7dYQd5n3qRk"
    digest = hashlib.sha256(old.encode()).hexdigest()
    until = timezone.now() + timedelta(days=1)
    Token.objects.create(user=build.user(), name="old", secret_digest=digest, scopes=["read"], expires_at=until)
    assert Api(old).get("/runs/").status_code == 200


def test_a_token_may_be_all_that_the_limits_allow_and_no_more() -> None:
    person, now = build.user("root", "admin"), timezone.now()
    most: dict[str, Any] = {"name": "x" * 80, "scopes": roles.SCOPES, "expires_at": now + timedelta(days=365.9)}
    assert create_token(user=person, **most)[0].name == most["name"]
    for field, wrong in (
        ("name", "a\0b"),
        ("scopes", ["rule"]),
        ("expires_at", now + timedelta(days=366.1)),
    ):
        with pytest.raises(InvalidInput) as refused:
            create_token(user=person, **{**most, field: wrong})
        assert list(refused.value.fields) == [field]


@pytest.fixture
def all_logs() -> Iterator[Callable[[], str]]:
    """Every line that any logger writes, at every level, statements included, before anything is taken out of it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.DEBUG)
    root.addHandler(handler)
    yield stream.getvalue
    root.removeHandler(handler)
    root.setLevel(before)


def test_no_token_is_in_any_log_after_requests_that_went_well_and_wrong(api: Api, all_logs: Callable[[], str]) -> None:
    """Not even before the formatters take secrets out: nobody should log one in the first place."""
    secrets = [api.post("/tokens/", asked()).json()["secret"]]
    secrets.append(api.post("/tokens/", asked(scopes=["read", "admin"])).json()["secret"])
    hook = api.post("/webhooks/", {"url": "https://hooks.example/x", "events": ["run.failed"]})
    assert hook.status_code == 201
    secrets.append(hook.json()["secret"])
    for secret in secrets[:2]:
        for path in ("/runs/", "/runs/999/", "/nothing/", "/tokens/"):
            Api(secret).get(path)
        Api(secret).post("/runs/", {"suite": secret})
        Api(secret).send("POST", "/runs/", "{not json", type_="application/json")
        Api(secret + "x").get("/runs/")
    Client(raise_request_exception=False).get("/login/", headers={"Authorization": f"Bearer {secrets[0]}"})
    logged = all_logs()
    assert "Not Found" in logged
    assert not [secret for secret in secrets if secret in logged or secret[14:50] in logged]
