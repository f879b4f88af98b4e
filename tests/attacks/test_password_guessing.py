"""Passwords guessed over many names, from many addresses, many at once; and a name locked to keep its person out."""

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core.cache import caches
from django.db import connections
from django.test import Client

from runs.access import add_person, login_guard
from runs.store import counters

PASSWORD = "a long enough pass phrase"
WRONG = "wrong"


@pytest.fixture(autouse=True)
def quick_hashes(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    monkeypatch.setattr(counters, "_silent_until", float("-inf"))  # another test's Redis may just have been away
    caches[counters.ALIAS].clear()


@pytest.fixture
def ada(db: None, quick_hashes: None) -> Any:
    return add_person(name="ada", role="engineer", password=PASSWORD)[0]


def sign_in(name: str = "ada", password: str = WRONG, *, address: str = "198.51.100.7") -> Any:
    """Each try by a client of its own, as a script makes them."""
    return Client(REMOTE_ADDR=address).post("/login/", {"username": name, "password": password})


def is_in(answer: Any) -> bool:
    return "evalboard_session" in answer.cookies


def test_one_password_over_many_names_is_stopped(ada: Any) -> None:
    answers = [sign_in(f"person-{n}").status_code for n in range(login_guard.MAX_OF_ADDRESS + 5)]
    assert answers == [200] * login_guard.MAX_OF_ADDRESS + [429] * 5
    refused = sign_in(password=PASSWORD)
    assert refused.status_code == 429
    assert "for several names" in refused.content.decode()
    assert 14 * 60 < int(refused["Retry-After"]) <= 15 * 60
    assert is_in(sign_in(password=PASSWORD, address="203.0.113.1")), "others go on"


@pytest.mark.nightly
def test_ones_own_account_does_not_start_the_count_of_an_address_anew(ada: Any) -> None:
    for n in range(login_guard.MAX_OF_ADDRESS - 1):
        sign_in(f"person-{n}")
    assert is_in(sign_in(password=PASSWORD))
    more = range(login_guard.MAX_OF_ADDRESS, login_guard.MAX_OF_KNOWN_ADDRESS + 1)
    assert {sign_in(f"person-{n}").status_code for n in more} == {200}
    assert sign_in("one-more").status_code == 429


def test_one_script_with_wrong_passwords_does_not_lock_an_office_out(ada: Any) -> None:
    """An address with a recent sign-in has a higher limit. That of one name stays."""
    add_person(name="grace", role="viewer", password=PASSWORD)
    assert is_in(sign_in(password=PASSWORD))
    for n in range(login_guard.MAX_OF_ADDRESS + 5):
        assert sign_in(f"person-{n}").status_code == 200
    assert is_in(sign_in("grace", PASSWORD))
    assert [sign_in("one").status_code for _ in range(6)] == [200] * 4 + [429] * 2
    elsewhere = [sign_in(f"person-{n}", address="192.0.2.9").status_code for n in range(login_guard.MAX_OF_ADDRESS + 1)]
    assert elsewhere.count(429) == 1, "an address from which nobody came is locked as before"


def test_what_is_known_of_an_address_is_forgotten_after_a_day(ada: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_in(sign_in(password=PASSWORD))
    later = time.time() + login_guard.KNOWN_SECONDS + 1
    with monkeypatch.context() as tomorrow:
        tomorrow.setattr(time, "time", lambda: later)  # the cache's clock
        assert not counters.is_remembered("signed-in:198.51.100.7")


@pytest.mark.parametrize(
    ("first", "second", "are_one"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:198.51.100.7", "198.51.100.7", True),
        ("198.51.100.7", "198.51.100.8", False),
    ],
)
def test_of_ipv6_a_whole_connection_is_one_address(
    ada: Any, settings: Any, first: str, second: str, are_one: bool
) -> None:
    for _ in range(settings.AXES_FAILURE_LIMIT):
        sign_in(address=first)
    assert is_in(sign_in(password=PASSWORD, address=second)) is not are_one


def test_whoever_knows_a_name_slows_guessing_down_and_not_its_person(ada: Any) -> None:
    answers = [sign_in(address=f"203.0.113.{n}").status_code for n in range(1, login_guard.MAX_OF_NAME + 1)]
    assert set(answers) == {200}
    guesser = [sign_in(address="192.0.2.1") for _ in range(2)]
    assert [answer.status_code for answer in guesser] == [200, 429], "one try for each address instead of five"
    assert "Many wrong passwords were tried for this name" in guesser[1].content.decode()
    assert is_in(sign_in(password=PASSWORD)), "the person's own right password is taken"


def test_a_flood_over_names_and_addresses_leaves_each_address_one_try(
    ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_guard, "MAX_IN_ALL", 6)
    for n in range(6):
        assert sign_in(f"person-{n}", address=f"203.0.113.{n}").status_code == 200
    assert [sign_in(f"other-{n}", address="192.0.2.1").status_code for n in range(2)] == [200, 429]
    assert is_in(sign_in(password=PASSWORD))


def test_the_log_has_a_line_to_watch_and_no_name(ada: Any, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    """People type their password where their name belongs."""
    for _ in range(settings.AXES_FAILURE_LIMIT + 1):
        sign_in("hunter2-hunter2", "hunter3-hunter3", address="2001:db8::7")
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert said.count("sign_in_failed address=2001:db8::7") == settings.AXES_FAILURE_LIMIT
    assert said.count("sign_in_refused address=2001:db8::7 because=name_here") == 2  # the fifth is told, and the sixth
    assert "hunter" not in "\n".join(said)


class Slow(MD5PasswordHasher):
    """A hash that takes until the test lets it end, and counts how many are under way."""

    algorithm = "slow"
    may_end = threading.Event()
    under_way, most = 0, 0
    lock = threading.Lock()

    def encode(self, password: str, salt: str) -> str:
        with Slow.lock:
            Slow.under_way += 1
            Slow.most = max(Slow.most, Slow.under_way)
        Slow.may_end.wait(60)
        with Slow.lock:
            Slow.under_way -= 1
        return str(super().encode(password, salt))


@pytest.mark.django_db(transaction=True)
def test_hashing_keeps_half_of_the_threads_free(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Forty at once: two are hashed, two wait, all others are answered while those still are at it."""
    settings.PASSWORD_HASHERS = ["tests.attacks.test_password_guessing.Slow"]
    Slow.may_end.clear()
    Slow.most = 0
    n, taken = 40, login_guard.HASHED_AT_ONCE + login_guard.WAITING_AT_ONCE
    answered = threading.Semaphore(0)

    def attempt(place: int) -> int:
        try:
            status = sign_in(f"person-{place}", address=f"203.0.113.{place}").status_code
            answered.release()
            return int(status)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(n) as pool:
        tries = [pool.submit(attempt, place) for place in range(n)]
        try:
            for _ in range(n - taken):
                assert answered.acquire()
            assert sum(each.done() for each in tries) <= n - taken
        finally:
            Slow.may_end.set()
        answers = sorted(each.result() for each in tries)
    assert answers == [200] * taken + [429] * (n - taken)
    assert Slow.most == login_guard.HASHED_AT_ONCE
    assert sum("because=busy" in record.getMessage() for record in caplog.records) == n - taken
