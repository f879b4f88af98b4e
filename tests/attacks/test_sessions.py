"""A browser left open, a stolen cookie, a shared computer's cache, a cookie planted by another host of the domain."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.sessions.models import Session
from django.test import Client

from runs.access import use_token
from tests import build

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]
HOUR = 3600.0


@pytest.fixture
def ada() -> Any:
    return build.user("ada", "admin")


@pytest.fixture
def browser(ada: Any) -> Callable[[], Client]:
    def signed_in() -> Client:
        client = Client()
        client.force_login(ada)
        return client

    return signed_in


def is_signed_in(client: Client, **headers: str) -> bool:
    return client.get("/runs/", headers=headers).status_code == 200


def test_a_session_that_nobody_uses_ends_after_half_a_day(browser: Callable[[], Client]) -> None:
    client, began = browser(), time.time()
    for hours, is_in in ((11.5, True), (23, True), (35.5, False)):
        with time_machine.travel(began + hours * HOUR):
            assert is_signed_in(client) is is_in, hours


def test_a_page_that_polls_by_itself_uses_nothing(browser: Callable[[], Client]) -> None:
    client, began = browser(), time.time()
    for hours in range(1, 12):
        with time_machine.travel(began + hours * HOUR):
            assert is_signed_in(client, HX_Request="true")
    with time_machine.travel(began + 12.1 * HOUR):
        assert not is_signed_in(client, HX_Request="true")


def test_a_session_ends_after_a_week_however_much_it_is_used(browser: Callable[[], Client]) -> None:
    client, began = browser(), time.time()
    for hours in range(10, 24 * 7, 10):
        with time_machine.travel(began + hours * HOUR):
            assert is_signed_in(client), hours
    with time_machine.travel(began + (24 * 7 + 0.1) * HOUR):
        assert not is_signed_in(client)
        assert not Session.objects.exists()


def test_both_limits_are_settings(browser: Callable[[], Client], settings: Any) -> None:
    settings.SESSION_DAYS = 1 / 24
    client, began = browser(), time.time()
    with time_machine.travel(began + 0.9 * HOUR):
        assert is_signed_in(client)
    with time_machine.travel(began + 1.1 * HOUR):
        assert not is_signed_in(client)


@pytest.mark.nightly
def test_a_session_from_before_the_limits_is_given_them(browser: Callable[[], Client]) -> None:
    client, began = browser(), time.time()
    session = client.session
    del session["began_at"], session["seen_at"]
    session.save()
    assert is_signed_in(client)
    for hours in range(10, 24 * 7, 10):
        with time_machine.travel(began + hours * HOUR):
            assert is_signed_in(client), hours
    with time_machine.travel(began + (24 * 7 + 0.1) * HOUR):
        assert not is_signed_in(client)


def test_signing_out_everywhere_ends_every_session_and_nobody_elses(browser: Callable[[], Client]) -> None:
    here, stolen, other = browser(), browser(), Client()
    other.force_login(build.user("grace"))
    secret = build.token(build.user("mary"))
    assert "Sign out everywhere" in here.get("/settings/").content.decode()
    assert here.get("/logout/everywhere/").headers["Location"] == "/"
    assert is_signed_in(here)
    answer = here.post("/logout/everywhere/", follow=True)
    assert "2 sessions ended" in answer.content.decode()
    assert [is_signed_in(each) for each in (here, stolen, other)] == [False, False, True]
    assert use_token(secret=secret) is not None


PAGES = (
    "/",
    "/runs/",
    "/releases/",
    "/suites/",
    "/workers/",
    "/settings/",
    "/settings/tokens/",
    "/login/",
    "/nothing/",
)


def test_pages_are_kept_by_nobody(browser: Callable[[], Client]) -> None:
    client = browser()
    for path in PAGES:
        answer = client.get(path)
        assert "no-store" in answer["Cache-Control"], path
        assert "camera=()" in answer["Permissions-Policy"], path
        if answer.status_code == 200:
            assert "private" in answer["Cache-Control"], path


def test_what_may_be_kept_still_says_so(browser: Callable[[], Client]) -> None:
    build.suite("colours")
    assert "max-age" in browser().get("/suites/colours/badge.svg")["Cache-Control"]
    static = Client().get("/static/shell/base.css")
    assert "no-store" not in static["Cache-Control"]
    static.close()


@pytest.mark.nightly
def test_over_tls_cookies_are_of_this_host_only() -> None:
    program = """
import django, json; django.setup()
from django.conf import settings
print(json.dumps([settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME, settings.SESSION_COOKIE_SECURE,
    settings.CSRF_COOKIE_SECURE, settings.SESSION_COOKIE_PATH, settings.SESSION_COOKIE_DOMAIN]))
"""
    said = {}
    for https in ("true", "false"):
        own = {
            "EVALBOARD_HTTPS": https,
            "EVALBOARD_SECRET_KEY": "s" * 40 + "0123456789",
            "EVALBOARD_HOSTS": "localhost",
        }
        environment = {**os.environ, **own, "DJANGO_SETTINGS_MODULE": "evalboard.settings"}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        said[https] = json.loads(done.stdout)
    assert said["true"] == ["__Host-evalboard_session", "__Host-evalboard_csrf", True, True, "/", None]
    assert said["false"][:2] == ["evalboard_session", "evalboard_csrf"]
