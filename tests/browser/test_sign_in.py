"""The one-time link and what follows it, in a real browser: one click, with scripts and without."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Browser, expect
from sesame.utils import get_query_string

from runs.access import grant_role
from tests.browser import looks
from tests.browser.conftest import Watched
from tests.nightly import nightly

pytestmark = pytest.mark.browser


@pytest.fixture
def person(transactional_db: None) -> Any:
    made, _ = get_user_model().objects.get_or_create(username="mira")
    grant_role(user=made, role="release manager")
    return made


@pytest.fixture
def stranger(browser: Browser, live_server: Any) -> Iterator[Any]:
    contexts = []

    def come(**options: Any) -> Watched:
        contexts.append(browser.new_context(**options))
        return Watched(contexts[-1], live_server.url)

    yield come
    for context in contexts:
        context.close()


@pytest.mark.parametrize("has_scripts", [True, *nightly([False])])
def test_a_link_signs_in_by_one_click(person: Any, stranger: Any, has_scripts: bool) -> None:
    watched = stranger(java_script_enabled=has_scripts)
    page = watched.open(f"/signin/{get_query_string(person)}")
    page.get_by_role("button", name="Sign in as mira").click()
    page.get_by_text("signed in as mira").click()
    expect(page.get_by_role("button", name="Sign out", exact=True)).to_be_visible()
    assert page.url == watched.base + "/"
    assert watched.complaints == []


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_the_page_of_a_link_fits_and_has_no_barrier(person: Any, stranger: Any, theme: str, width: int) -> None:
    watched = stranger(color_scheme=theme, viewport={"width": width, "height": 800})
    watched.open(f"/signin/{get_query_string(person)}")
    assert watched.overflow() == 0
    assert watched.barriers() == []
    watched.check()


@pytest.mark.nightly
def test_signing_out_everywhere_ends_the_other_browser_too(person: Any, watch: Any) -> None:
    here, there = watch(role="release manager"), watch(role="release manager")
    page = here.open("/")
    page.get_by_text("signed in as mira").click()
    page.get_by_role("button", name="Sign out everywhere").click()
    expect(page.get_by_text("2 sessions ended")).to_be_visible()
    assert "/login/" in there.open("/runs/").url
    here.check()
