"""A NUL in an address, a query, a form or a cookie is answered: PostgreSQL stores none, so it names nothing."""

import re
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from tests import build
from tests.api.conftest import Api
from tests.api.test_access import ROUTES, SAMPLES, Route

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")  # REST answers HEAD with 405 wherever it leads
NUL = "no%00thing"
TEXT = re.compile(r"<(?!int:)\w+:\w+>")


def with_nuls() -> list[Route]:
    """Every route that has text in its address, once for each such parameter with a NUL in that one."""
    return [
        replace(route, path=f"/{filled(route.pattern[: found.start()])}{NUL}{filled(route.pattern[found.end() :])}")
        for route in ROUTES
        for found in TEXT.finditer(route.pattern)
    ]


def filled(pattern: str) -> str:
    return re.sub(r"(<\w+:)\w+>", lambda found: SAMPLES[found[1]], pattern)


@pytest.fixture
def page(db: None) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(build.user("grace", "admin"))
    return client


@pytest.mark.nightly
def test_an_address_with_a_nul_leads_nowhere(api: Api, page: Client) -> None:
    routes = with_nuls()
    assert {route.is_api for route in routes} == {True, False}  # both are walked
    answers = {}
    for route in routes:
        for method in METHODS:
            answer = api.send(method, route.path, "{}") if route.is_api else page.generic(method, route.path)
            answers[method, route.path] = answer.status_code
    assert {asked: status for asked, status in answers.items() if status != 404} == {}


@pytest.mark.parametrize("address", ["/runs/?endpoint=a%00", "/fingerprints/?endpoint=a%00", "/find/?%00=a"])
def test_a_page_cannot_be_asked_for_by_a_nul(page: Client, address: str) -> None:
    answer = page.get(address)
    assert (answer.status_code, "has a NUL character" in answer.content.decode()) == (400, True)


def test_a_form_with_a_nul_is_not_read(page: Client) -> None:
    build.endpoint()
    run = build.run()
    answer = page.post(f"/runs/{run.pk}/forced/", {"endpoint": "a\0"})
    assert (answer.status_code, "Nothing was changed." in answer.content.decode()) == (400, True)


@pytest.mark.parametrize("address", ["/suites/", "/api/v1/suites/"])
def test_a_session_with_a_nul_is_none(db: None, address: str) -> None:
    """A quoted cookie may hold an octal escape, which is read as the character."""
    cookie = rf'{settings.SESSION_COOKIE_NAME}="\000{"a" * 31}"'
    answer: Any = Client(raise_request_exception=False).get(address, headers={"Cookie": cookie})
    assert answer.status_code == (401 if address.startswith("/api/") else 302)
    assert answer.cookies[settings.SESSION_COOKIE_NAME].value == ""
