"""Who may sign in: added, changed and shut out from the shell, and the tokens that act for them."""

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import Client
from django.utils import timezone

from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.profile import DEFAULT_PROFILES
from runs.access import add_person, change_role, invite_person, remove_person, roles, use_token
from runs.catalogue import create_profile
from runs.models import ProfileRecord
from tests import build
from tests.api.test_races import beside

__all__ = ["beside"]
PASSWORD = "a long enough pass phrase"


@pytest.fixture
def manage(db: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Callable[..., str]:
    """Run a management command with `stdin`; what it wrote to stdout."""
    settings.HAS_SECRET_KEY = True

    def run(*arguments: str, stdin: str = "") -> str:
        out = io.StringIO()
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        call_command(*arguments, stdout=out, stderr=io.StringIO())
        return out.getvalue().strip()

    return run


def person(name: str = "ada") -> Any:
    return get_user_model().objects.get(username=name)


def test_a_new_person_signs_in_once_by_the_printed_address(manage: Callable[..., str]):
    link = manage("add_person", "ada", "--role", "engineer")
    assert Client().post("/signin/", dict(parse_qsl(urlsplit(link).query))).status_code == 302
    assert roles.scopes_of(person()) == {"read", "run"}
    assert not person().has_usable_password()
    assert Client().get(link).status_code == 403


@pytest.mark.nightly
def test_a_password_is_read_from_stdin_and_nothing_is_printed(manage: Callable[..., str]):
    assert manage("add_person", "ada", "--role", "admin", "--password", stdin=PASSWORD + "\n") == ""
    assert authenticate(username="ada", password=PASSWORD) == person()


def test_a_weak_password_adds_nobody(manage: Callable[..., str]):
    with pytest.raises(CommandError, match="too short"):
        manage("add_person", "ada", "--role", "admin", "--password", stdin="secret\n")
    assert not get_user_model().objects.exists()


def test_adding_again_changes_the_role_and_keeps_the_password(manage: Callable[..., str]):
    manage("add_person", "ada", "--role", "engineer", "--password", stdin=PASSWORD)
    manage("add_person", "ada", "--role", "viewer")
    assert roles.scopes_of(person()) == {"read"}
    assert authenticate(username="ada", password=PASSWORD) == person()


def test_a_link_is_not_printed_where_no_server_could_check_it(manage: Callable[..., str], settings: Any):
    settings.HAS_SECRET_KEY = False
    with pytest.raises(CommandError, match="EVALBOARD_SECRET_KEY"):
        manage("add_person", "ada", "--role", "viewer")
    assert not get_user_model().objects.exists()


@pytest.mark.parametrize(
    ("changed", "field"), [({"name": "ada lovelace"}, "name"), ({"name": ""}, "name"), ({"role": "queen"}, "role")]
)
def test_a_name_or_role_that_is_none_is_refused(db: None, changed: dict[str, str], field: str):
    with pytest.raises(InvalidInput) as refused:
        add_person(**{"name": "ada", "role": "viewer", **changed})
    assert set(refused.value.fields) == {field}


def test_whoever_is_removed_is_out_at_once_with_their_tokens(manage: Callable[..., str]):
    manage("add_person", "ada", "--role", "engineer", "--password", stdin=PASSWORD)
    secret = manage("add_token", "ada", "nightly", "--scope", "read")
    client = Client()
    client.force_login(person(), backend="django.contrib.auth.backends.ModelBackend")
    assert client.get("/runs/").status_code == 200
    manage("remove_person", "ada")
    assert client.get("/runs/").status_code == 302
    assert authenticate(username="ada", password=PASSWORD) is None
    assert use_token(secret=secret) is None
    assert not roles.scopes_of(person())
    manage("add_person", "ada", "--role", "viewer")
    assert authenticate(username="ada", password=PASSWORD) is None, "nothing of before comes back"
    assert client.get("/runs/").status_code == 302


def test_nobody_cannot_be_removed(manage: Callable[..., str]):
    with pytest.raises(NotFound):
        remove_person(name="nobody")
    with pytest.raises(CommandError, match="no person named nobody"):
        manage("remove_person", "nobody")


@pytest.mark.parametrize(
    "command", [("remove_person", "ada"), ("add_person", "ada", "--role", "viewer")], ids=lambda command: command[0]
)
def test_no_command_takes_the_only_admin_away(manage: Callable[..., str], command: tuple[str, ...]):
    manage("add_person", "ada", "--role", "admin")
    with pytest.raises(CommandError, match="ada is the only admin"):
        manage(*command)
    assert roles.scopes_of(person()) == roles.ROLES["admin"]
    manage("add_person", "grace", "--role", "admin")
    manage(*command)
    assert "admin" not in roles.scopes_of(person())


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_are_demoted_at_once_leave_one(beside: Any):
    """Both are admins until the first demotion is stored, and the second waits for it."""
    for name in ("ada", "grace"):
        add_person(name=name, role="admin")
    with transaction.atomic():
        change_role(name="ada", role="viewer")
        second = beside(lambda: change_role(name="grace", role="viewer"))
    with pytest.raises(Conflict, match="grace is the only admin"):
        second.result(timeout=60)
    assert roles.scopes_of(person("grace")) == roles.ROLES["admin"]


def test_the_only_admin_is_the_only_one_who_may_sign_in_whatever_made_them_one(db: None):
    for name in ("ada", "grace"):
        add_person(name=name, role="admin")
    secret = build.token(person())
    remove_person(name="grace")
    assert use_token(secret=secret) is not None, "of others nothing ends"
    with pytest.raises(Conflict, match="ada is the only admin"):
        change_role(name="ada", role="viewer")
    with pytest.raises(NotFound):
        change_role(name="grace", role="admin")
    get_user_model().objects.create_superuser("root", password=PASSWORD)
    change_role(name="ada", role="viewer")
    with pytest.raises(Conflict, match="root is the only admin"):
        remove_person(name="root")
    with pytest.raises(InvalidInput):
        change_role(name="root", role="queen")
    change_role(name="root", role="admin")  # nobody is taken away
    with pytest.raises(Conflict, match="ada is there already"):
        invite_person(name="ada", role="admin")
    assert roles.scopes_of(person()) == {"read"}


def test_a_superuser_who_is_let_in_again_has_the_new_role_alone(manage: Callable[..., str]):
    manage("add_person", "grace", "--role", "admin")
    get_user_model().objects.create_superuser("ada", password=PASSWORD)
    remove_person(name="ada")
    invite_person(name="ada", role="viewer")
    assert roles.scopes_of(person()) == {"read"}


def test_a_token_acts_within_its_scopes_for_as_long_as_was_said(manage: Callable[..., str]):
    manage("add_person", "ada", "--role", "engineer")
    secret = manage("add_token", "ada", "nightly", "--scope", "read", "--scope", "run", "--days", "30")
    token = use_token(secret=secret)
    assert token is not None
    assert (token.user, token.name, token.scopes) == (person(), "nightly", ["read", "run"])
    assert abs(token.expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("nobody", "ci", "--scope", "read"), "no person named nobody", id="no such person"),
        pytest.param(("ada", "ci", "--scope", "read", "--days", "900"), "366 days", id="too long"),
    ],
)
def test_a_token_that_cannot_be_is_refused(manage: Callable[..., str], arguments: tuple[str, ...], words: str):
    manage("add_person", "ada", "--role", "viewer")
    with pytest.raises(CommandError, match=words):
        manage("add_token", *arguments)


def test_an_installation_without_samples_has_the_default_profiles(manage: Callable[..., str]):
    manage("load_profiles")
    assert set(ProfileRecord.objects.values_list("slug", "version")) == {(slug, 1) for slug in DEFAULT_PROFILES}


def test_loading_profiles_again_leaves_what_people_changed(manage: Callable[..., str]):
    manage("load_profiles")
    default = DEFAULT_PROFILES["pinned"]["settings"]
    ours = default | {"sampling": default["sampling"] | {"seed": 7}}
    create_profile(slug="pinned", title="Ours", settings=ours)
    manage("load_profiles")
    assert ProfileRecord.objects.filter(slug="pinned").order_by("-version").values_list("title", flat=True)[0] == "Ours"
