"""Every address of the pages, by construction: it fits the window, and axe finds nothing. Contrast is nightly."""

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

# What has a test of its own: the REST documentation is Redoc's, a sign-in and an e-mail's link are of nobody yet.
ELSEWHERE = {"api_docs", "login", "signin", "unsubscribe"}
# What changes something, is a file, or leads on; none of them is a page.
NO_PAGES = {
    *("baseline_again", "experiment_cancel", "experiment_delete", "experiment_resume", "experiment_start", "bisect"),
    *("forced_pair", "logout", "logout_everywhere", "pair_replay", "release_sign_offs", "run_cancel", "run_repeats"),
    *(
        "image",
        "endpoint_fingerprint",
        "endpoint_price",
        "endpoint_try",
        "run_again",
        "run_complete",
        "follow",
        "unfollow",
    ),
    *("audit_export", "comments", "comment_withdraw", "person_link", "person_remove", "person_role", "session_end"),
    *("address_delete", "address_on", "address_test"),
    *("run_rescore", "same_model_back", "schedule_delete", "schedule_pause", "schedule_resume", "sign_offs_export"),
    *("suite_badge", "suite_baselines", "token_revoke", "tour_end", "webhook_delete", "webhook_on", "webhook_test"),
}


def is_page(status: int, headers: Any) -> bool:
    return status == 200 and headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_every_page_fits_and_has_no_barrier(stored: Stored, watch: Any, theme: str, width: int) -> None:
    client = Client()
    client.force_login(models.WebhookRecord.objects.get().created_by)
    routes = {str(each.name): list(each.pattern.converters) for each in get_resolver("frontend.urls").url_patterns}
    known = {name: next(addresses(stored, name, parameters), None) for name, parameters in routes.items()}
    assert set(routes) >= NO_PAGES | ELSEWHERE
    answers = {name: client.get(known[name]) for name in sorted(NO_PAGES) if known[name]}
    assert [name for name, answer in answers.items() if is_page(answer.status_code, answer.headers)] == []
    watched = watch(role="admin", theme=theme, width=width)
    found = []
    for name in [name for name in routes if name not in NO_PAGES | ELSEWHERE]:
        opened = watched.page.goto(f"{watched.base}{known[name]}")
        assert is_page(opened.status, opened.headers), f"tell the walk about {name}"
        found += [(name, *barrier) for barrier in watched.barriers(with_contrast=False)]
        found += [(name, f"{box} scrolls sideways") for box in watched.page.evaluate(SCROLLING)]
        if watched.overflow():
            found.append((name, "is wider than the window"))
    assert found == []
    watched.check()
