"""Casts: a test finds the rows of those that it names and no others, whatever the tests before it did to them."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, connection, transaction

from runs.models import SuiteVersionRecord, Token
from runs.suites import suite_report
from runs.suites.read_worth import cases_worth
from tests import build
from tests.casts import cast, with_param

pytestmark = pytest.mark.django_db
told: list[str] = []


@cast
def ada() -> Any:
    transaction.on_commit(lambda: told.append("of the cast"))
    return build.user("ada")


@cast
def bob(ada: Any) -> Any:
    assert ada.username == "ada"
    return build.user("bob")


@cast
def person(param: str) -> Any:
    return build.user(param, param)


@cast
def version() -> SuiteVersionRecord:
    return build.suite()


def names() -> set[str]:
    return set(get_user_model().objects.values_list("username", flat=True))


def leave_nothing(*people: Any) -> None:
    for one in people:
        one.username = "somebody else"
    get_user_model().objects.all().delete()
    assert names() == set()


@pytest.mark.parametrize("again", range(2))
def test_who_names_none_finds_none(again: int) -> None:
    assert names() == set()
    build.user("left behind")


@pytest.mark.parametrize("again", range(2))
def test_who_names_one_finds_it_as_it_was(ada: Any, again: int) -> None:
    assert (names(), ada.username) == ({"ada"}, "ada")
    leave_nothing(ada)


@pytest.mark.parametrize("again", range(2))
def test_what_a_cast_builds_on_is_there(bob: Any, again: int) -> None:
    assert (names(), bob.username) == ({"ada", "bob"}, "bob")
    leave_nothing(bob)


@with_param("person", "viewer", "admin")
def test_a_cast_may_have_a_parameter(person: Any) -> None:
    assert (names(), person.username) == ({person.username}, person.username)


@pytest.mark.django_db(transaction=True)
def test_who_commits_stores_them_alone(bob: Any, ada: Any) -> None:
    assert not connection.in_atomic_block
    assert names() == {"ada", "bob"}


def test_only_a_test_s_own_callbacks_are_captured(ada: Any, django_capture_on_commit_callbacks: Any) -> None:
    told.clear()
    with django_capture_on_commit_callbacks(execute=True):
        transaction.on_commit(lambda: told.append("of the test"))
    assert told == ["of the test"]


def test_references_are_checked_as_at_the_end_of_a_transaction(ada: Any) -> None:
    Token.objects.create(user_id=ada.pk + 1, name="nobody's", scopes=["read"], expires_at="2099-01-01T00:00:00Z")
    with pytest.raises(IntegrityError):
        connection.check_constraints()
    transaction.set_rollback(True)


@pytest.mark.parametrize("tag", ["warm", "cold"])
def test_what_this_process_keeps_of_rows_is_forgotten(version: SuiteVersionRecord, tag: str) -> None:
    version.cases.update(tags=[tag])  # which nothing of ours does, so that what was read of a version is kept
    assert cases_worth(suite_report("colours")).tags == ((tag, 3),)
