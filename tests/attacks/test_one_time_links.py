"""One link used by eight at once, looked at by a chat program, and kept by somebody who was removed."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connections
from django.test import Client
from sesame.utils import get_parameters

from runs.access import add_person, remove_person, use_link
from tests import build

AT_ONCE = 8


def is_signed_in(client: Client) -> bool:
    return client.get("/runs/").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_link_used_by_eight_at_once_gives_one_session() -> None:
    link = get_parameters(build.user("ada"))
    together = threading.Barrier(AT_ONCE)

    def use(_: int) -> int:
        try:
            client = Client()
            together.wait()
            return client.post("/signin/", link).status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = sorted(pool.map(use, range(AT_ONCE)))
    assert answers == [302] + [403] * (AT_ONCE - 1)
    assert Session.objects.count() == 1


@pytest.mark.django_db
def test_looking_at_a_link_does_not_use_it_up() -> None:
    link = get_parameters(build.user("ada"))
    preview, ada = Client(), Client()
    for _ in range(3):
        assert preview.get("/signin/", link).status_code == 200
        assert preview.head("/signin/", link).status_code == 200
    assert not Session.objects.exists()
    assert not is_signed_in(preview)
    assert ada.post("/signin/", link).status_code == 302
    assert is_signed_in(ada)


@pytest.mark.django_db
def test_a_page_elsewhere_cannot_sign_somebody_in_as_another() -> None:
    link = get_parameters(build.user("eve"))
    victim = Client(enforce_csrf_checks=True)
    page = victim.get("/signin/", link)
    assert victim.post("/signin/", link).status_code == 403
    mark = victim.cookies["evalboard_csrf"].value
    assert victim.post("/signin/", {**link, "csrfmiddlewaretoken": mark}).status_code == 302
    # With no origin at all the form could not be told from another site's.
    assert page["Referrer-Policy"] == "strict-origin"
    assert page["Cache-Control"] == "no-store"


@pytest.mark.nightly
@pytest.mark.django_db
def test_adding_somebody_again_revives_nothing() -> None:
    ada, _ = add_person(name="ada", role="engineer", password="a long enough pass phrase")
    at_work, late = Client(), Client()
    at_work.force_login(ada, backend="django.contrib.auth.backends.ModelBackend")
    ada.refresh_from_db()
    link = get_parameters(ada)
    kept = at_work.cookies["evalboard_session"].value
    stored = Session.objects.get().session_data
    remove_person(name="ada")
    assert not Session.objects.exists()
    again, is_new = add_person(name="ada", role="engineer")
    assert (again.pk, is_new) == (ada.pk, False)
    assert not is_signed_in(at_work)
    # Not even where somebody has kept what the session held.
    Session.objects.create(
        session_key=kept, session_data=stored, expire_date=build.timezone.now() + build.timedelta(days=1)
    )
    at_work.cookies["evalboard_session"] = kept
    assert not is_signed_in(at_work)
    assert late.post("/signin/", link).status_code == 403
    sent = {"username": "ada", "password": "a long enough pass phrase"}
    assert "evalboard_session" not in late.post("/login/", sent).cookies
    assert late.post("/signin/", get_parameters(again)).status_code == 302


@pytest.mark.django_db
@pytest.mark.parametrize("change", ["password", "is_active"])
def test_a_link_checked_before_a_removal_is_not_used_after_it(change: str) -> None:
    """The removal comes between the look at the link and its use."""
    ada: Any = build.user("ada")
    seen = type(ada).objects.get(pk=ada.pk)
    remove_person(name="ada")
    if change == "password":
        type(ada).objects.update(is_active=True)
    assert not use_link(person=seen)
