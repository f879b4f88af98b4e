"""The API's documentation: drawn without another host, without a complaint, at a phone's width too."""

from typing import Any

import pytest

from tests.browser.looks import SHIFTS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# Redoc asks its makers' host for their mark, which the page's policy does not let out.
ITS_OWN_MARK = "cdn.redoc.ly/redoc/logo-mini.svg"


@pytest.mark.nightly
@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.nightly), 390])
def test_the_documentation_is_drawn_from_this_server_alone(live_server: Any, browser: Any, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    page.add_init_script(SHIFTS)
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda said: complaints.append(said.text))
    page.on("pageerror", lambda problem: complaints.append(str(problem)))
    page.on("response", lambda answer: asked.append(answer.url))
    page.goto(f"{live_server.url}/api/docs/")
    page.locator("h2", has_text="Start a run").first.wait_for(timeout=60_000)
    page.locator("h5").first.wait_for(state="attached")
    assert page.locator("h5").evaluate_all("heads => heads.filter(head => head.ariaLevel !== '3').length") == 0
    assert [said for said in complaints if ITS_OWN_MARK not in said] == []
    assert all(url.startswith(live_server.url) for url in asked)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shifts = "window.shifts.map((each) => [each.value, each.sources.map((of) => of.node?.outerHTML?.slice(0, 80))])"
    assert page.evaluate(shifts) == []
    policy = page.request.get(f"{live_server.url}/api/docs/").headers["content-security-policy"]
    assert "unsafe" not in policy
    context.close()
