"""Every address of the pages, by construction: it fits the window, and axe finds nothing."""

from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver

from runs import models
from tests.browser import looks
from tests.house.test_no_pooled_numbers import Stored, addresses, stored

__all__ = ["stored"]
pytestmark = pytest.mark.browser
# Boxes that scroll sideways, by their names; what lies in a fold is the numbers of a chart that is drawn above it.
SCROLLING = """
[...document.querySelectorAll(".scroll")]
  .filter((box) => !box.closest("details") && box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.getAttribute("aria-label"))
"""

# What is walked by a test of its own: the REST documentation is Redoc's, and a sign-in is of nobody yet.
ELSEWHERE = {"api_docs", "login", "signin"}
# What changes something, is a file, or leads on; none of them is a page.
NO_PAGES = {
    *("baseline_again", "experiment_cancel", "experiment_delete", "experiment_resume", "experiment_start", "bisect"),
    *("forced_pair", "logout", "logout_everywhere", "pair_replay", "release_sign_offs", "run_cancel", "run_repeats"),
    *("endpoint_fingerprint", "run_complete"),
    *("run_rescore", "same_model_back", "schedule_delete", "schedule_pause", "schedule_resume", "sign_offs_export"),
    *("suite_badge", "suite_baselines", "token_revoke", "tour_end", "webhook_delete", "webhook_on", "webhook_test"),
}


@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_every_page_fits_and_has_no_barrier(stored: Stored, watch: Any, theme: str, width: int) -> None:
    client = Client()
    client.force_login(models.WebhookRecord.objects.get().created_by)
    routes = {str(each.name): list(each.pattern.converters) for each in get_resolver("frontend.urls").url_patterns}
    pages, others = {}, set()
    for name, parameters in routes.items():
        known = next(addresses(stored, name, parameters), None)
        answer = None if known is None or name in ELSEWHERE else client.get(known, follow=True)
        if answer is not None and answer.status_code == 200 and answer.headers["Content-Type"].startswith("text/html"):
            pages[name] = known
        else:
            others.add(name)
    assert others == NO_PAGES | ELSEWHERE, "tell the walk about it"
    watched = watch(role="admin", theme=theme, width=width)
    found = []
    for name, address in pages.items():
        watched.open(address)
        found += [(name, *barrier) for barrier in watched.barriers()]
        found += [(name, f"{box} scrolls sideways") for box in watched.page.evaluate(SCROLLING)]
        if watched.overflow():
            found.append((name, "is wider than the window"))
    assert found == []
    watched.check()
