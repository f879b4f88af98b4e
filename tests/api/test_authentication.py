"""Tokens, sessions, and who is turned away."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import Token
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db


def test_nobody_is_asked_to_say_who_they_are() -> None:
    answer = Api().get("/runs/")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert answer.json()["code"] == "not_authenticated"


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Bearer evb_nonsense", "bearer evb_nonsense", "Basic eDp5"])
def test_a_token_that_is_none_is_refused(header: str) -> None:
    assert Api().get("/runs/", Authorization=header).status_code == 401


def test_a_token_is_kept_as_its_digest_only() -> None:
    secret = build.token(build.user())
    stored = Token.objects.get()
    assert secret not in (stored.secret_digest, stored.name)
    assert len(stored.secret_digest) == 64


def test_an_expired_token_is_refused() -> None:
    secret = build.token(build.user())
    assert Api(secret).get("/runs/").status_code == 200
    Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Api(secret).get("/runs/").status_code == 401


def test_the_token_of_someone_who_may_no_longer_sign_in_is_refused() -> None:
    person = build.user()
    secret = build.token(person)
    person.is_active = False
    person.save()
    assert Api(secret).get("/runs/").status_code == 401


def test_the_use_of_a_token_is_noted_at_most_once_a_minute() -> None:
    secret = build.token(build.user())
    Api(secret).get("/runs/")
    first = Token.objects.get().last_used_at
    assert first is not None
    Api(secret).get("/runs/")
    assert Token.objects.get().last_used_at == first
    long_ago = first - timedelta(minutes=2)
    Token.objects.update(last_used_at=long_ago)
    Api(secret).get("/runs/")
    assert Token.objects.get().last_used_at != long_ago


def test_a_session_reads_without_and_writes_only_with_the_csrf_token() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(build.user())
    assert client.get("/api/v1/runs/").status_code == 200
    refused = client.post("/api/v1/runs/", {}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (403, "csrf_failed")
    client.get("/login/")
    client.cookies["evalboard_csrf"] = "a" * 32
    headers = {"X-CSRFToken": "a" * 32}
    accepted = client.post("/api/v1/runs/", {}, content_type="application/json", headers=headers)
    assert (accepted.status_code, accepted.json()["code"]) == (400, "invalid_input")


def test_a_token_needs_no_csrf_token() -> None:
    client = Client(enforce_csrf_checks=True)
    headers = {"Authorization": f"Bearer {build.token(build.user(), 'run')}"}
    answer = client.post("/api/v1/runs/", {}, content_type="application/json", headers=headers)
    assert answer.json()["code"] == "invalid_input"


def test_a_bad_token_is_not_forgiven_for_a_good_session() -> None:
    client = Client()
    client.force_login(build.user())
    assert client.get("/api/v1/runs/", headers={"Authorization": "Bearer evb_nonsense"}).status_code == 401


def test_no_proxy_keeps_what_one_person_read() -> None:
    for caller in (Api(), Api(build.token(build.user()))):
        assert caller.get("/runs/")["Cache-Control"] == "private, no-store"
