"""Signing in by password, and what comes of guessing one."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessLog
from django.core.management import call_command
from django.test import Client
from sesame.utils import get_parameters

from runs.access import add_person

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough pass phrase"
WRONG = "wrong"


@pytest.fixture(autouse=True)
def quick_hashes(settings: Any) -> None:
    """What makes a real hash strong makes fifty of them slow."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def ada(quick_hashes: None) -> Any:
    return add_person(name="ada", role="engineer", password=PASSWORD)[0]


def sign_in(name: str = "ada", password: str = WRONG, *, agent: str = "", **meta: str) -> Any:
    """Each try by a client of its own, as a script makes them."""
    sent = {"username": name, "password": password}
    return Client(headers={"User-Agent": agent}).post("/login/", sent, **meta)


def guess(n: int, **how: Any) -> Any:
    return [sign_in(**how) for _ in range(n)][-1]


def test_the_right_password_signs_in(ada: Any) -> None:
    answer = sign_in(password=PASSWORD)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert not AccessLog.objects.exists(), "who signed in when is not kept"


def test_the_fifth_wrong_password_locks_the_name(ada: Any, settings: Any) -> None:
    assert guess(settings.AXES_FAILURE_LIMIT - 1).status_code == 200
    answer = guess(1)
    assert answer.status_code == 429
    assert 14 * 60 < int(answer["Retry-After"]) <= 15 * 60
    page = answer.content.decode()
    assert "5 wrong passwords" in page
    assert "Try again in 15 minutes" in page
    right = sign_in(password=PASSWORD)
    assert right.status_code == 429
    assert "evalboard_session" not in right.cookies


def test_the_lock_ends_and_trying_does_not_make_it_longer(ada: Any, settings: Any) -> None:
    guess(settings.AXES_FAILURE_LIMIT)
    attempt = AccessAttempt.objects.get()
    guess(2)
    assert AccessAttempt.objects.get().attempt_time == attempt.attempt_time
    AccessAttempt.objects.update(attempt_time=attempt.attempt_time - timedelta(minutes=14))
    locked = sign_in(password=PASSWORD)
    assert "Try again in a minute" in locked.content.decode()
    AccessAttempt.objects.update(attempt_time=attempt.attempt_time - timedelta(minutes=15, seconds=1))
    assert sign_in(password=PASSWORD).status_code == 302


def test_another_browser_does_not_start_the_count_anew(ada: Any, settings: Any) -> None:
    answers = [sign_in(agent=f"browser {number}") for number in range(settings.AXES_FAILURE_LIMIT)]
    assert answers[-1].status_code == 429


def test_the_right_password_in_time_starts_the_count_anew(ada: Any, settings: Any) -> None:
    guess(settings.AXES_FAILURE_LIMIT - 1)
    assert sign_in(password=PASSWORD).status_code == 302
    assert guess(settings.AXES_FAILURE_LIMIT - 1).status_code == 200


def test_a_name_that_there_is_none_of_is_answered_the_same(ada: Any, settings: Any) -> None:
    known, unknown = sign_in(), sign_in("nobody")
    assert known.status_code == unknown.status_code == 200
    said = [answer.context["form"].non_field_errors() for answer in (known, unknown)]
    assert said[0] == said[1]
    assert guess(settings.AXES_FAILURE_LIMIT - 1, name="nobody").status_code == 429


def test_others_are_not_locked_out(ada: Any, settings: Any) -> None:
    add_person(name="grace", role="viewer", password=PASSWORD)
    guess(settings.AXES_FAILURE_LIMIT)
    assert sign_in("grace", PASSWORD).status_code == 302
    assert sign_in(password=PASSWORD, REMOTE_ADDR="10.0.0.9").status_code == 302, "from elsewhere"


def test_a_one_time_link_works_while_the_name_is_locked(ada: Any, settings: Any) -> None:
    guess(settings.AXES_FAILURE_LIMIT)
    answer = Client().post("/signin/", get_parameters(ada))
    assert (answer.status_code, "evalboard_session" in answer.cookies) == (302, True)


def test_links_that_are_none_lock_nobody_and_are_not_kept(ada: Any, settings: Any) -> None:
    for _ in range(settings.AXES_FAILURE_LIMIT + 1):
        assert Client().get("/signin/?sesame=AAAA_used_before").status_code == 403
    assert not AccessAttempt.objects.exists()
    assert sign_in(password=PASSWORD).status_code == 302


def test_the_session_of_a_locked_name_goes_on(ada: Any, settings: Any) -> None:
    at_work = Client()
    at_work.force_login(ada)
    guess(settings.AXES_FAILURE_LIMIT)
    assert at_work.get("/runs/").status_code == 200


def test_it_is_unlocked_from_the_shell(ada: Any, settings: Any) -> None:
    guess(settings.AXES_FAILURE_LIMIT)
    call_command("axes_reset_username", "ada")
    assert sign_in(password=PASSWORD).status_code == 302


def test_behind_a_proxy_each_client_is_counted_for_itself(ada: Any, settings: Any) -> None:
    settings.PROXIES = 1
    proxy = {"REMOTE_ADDR": "10.0.0.1"}
    assert guess(settings.AXES_FAILURE_LIMIT, HTTP_X_FORWARDED_FOR="198.51.100.7", **proxy).status_code == 429
    assert sign_in(password=PASSWORD, HTTP_X_FORWARDED_FOR="198.51.100.8", **proxy).status_code == 302


def test_a_client_cannot_pretend_to_be_another_one(ada: Any, settings: Any) -> None:
    """The proxy adds the true address at the end; what stands before it the client wrote."""
    settings.PROXIES = 1
    for number in range(settings.AXES_FAILURE_LIMIT):
        answer = sign_in(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR=f"203.0.113.{number}, 198.51.100.7")
    assert answer.status_code == 429


@pytest.mark.parametrize("sent", ["nonsense", "", "'; DROP TABLE axes_accessattempt; --"])
def test_without_a_proxy_nothing_that_is_sent_counts(ada: Any, settings: Any, sent: str) -> None:
    for proxies in (0, 1, 2):
        settings.PROXIES = proxies
        sign_in(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR=sent)
    assert set(AccessAttempt.objects.values_list("ip_address", flat=True)) == {"10.0.0.1"}


def test_no_password_is_kept_or_logged(ada: Any, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    guess(settings.AXES_FAILURE_LIMIT, password="hunter2-hunter2")
    attempt = AccessAttempt.objects.get()
    assert "hunter2" not in attempt.post_data + attempt.get_data + caplog.text
