"""A real Chromium on a real server, watched: whatever it complains of fails the test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth import get_user_model
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

from runs.access import grant_role
from tests.conftest import PATIENCE_MS
from tests.frontend import stage as staged

REPORTS = """
window.cspReports = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.cspReports.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""


@pytest.fixture
def stage(transactional_db: None, settings: Any) -> Any:
    staged.stage(model_root=settings.MODEL_ROOTS[0])
    return staged


class Watched:
    """A page that remembers every complaint: console, uncaught errors, CSP reports, requests to other hosts."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.base = base
        self.complaints: list[str] = []
        context.add_init_script(REPORTS)
        context.set_default_timeout(PATIENCE_MS)
        self.page: Page = context.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda problem: self.complaints.append(f"uncaught: {problem}"))
        self.page.on("request", self._asked)

    def open(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    def check(self) -> None:
        """Raise AssertionError with every complaint so far."""
        self.complaints += self.page.evaluate("window.cspReports ?? []")
        assert self.complaints == []

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def barriers(self, *, with_contrast: bool = True) -> list[tuple[str, str, list[str]]]:
        """Return all that axe finds on the page, of whatever impact: the address, the rule, the first elements.

        Contrast is two thirds of its time. tests/frontend/test_css.py has the arithmetic of every pair of inks.
        """
        options = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": with_contrast}}}
        return [
            (self.page.url, item["id"], [node["html"][:160] for node in item["nodes"][:3]])
            for item in Axe().run(self.page, options=options).response["violations"]
        ]

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"console: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.complaints.append(f"another host: {request.url}")


@pytest.fixture
def watch(browser: Browser, live_server: Any, transactional_db: None) -> Iterator[Callable[..., Watched]]:
    """Open a watched page, signed in as an engineer or with another role."""
    contexts: list[BrowserContext] = []

    def signed_in(
        *, theme: str = "light", width: int = 1280, role: str = "engineer", name: str = "mira", **options: Any
    ) -> Watched:
        user, _ = get_user_model().objects.get_or_create(username=name)
        grant_role(user=user, role=role)
        client = Client()
        client.force_login(user)
        session = client.cookies["evalboard_session"].value
        context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        context.add_cookies([{"name": "evalboard_session", "value": session, "url": live_server.url}])
        return Watched(context, live_server.url)

    yield signed_in
    for context in contexts:
        context.close()
