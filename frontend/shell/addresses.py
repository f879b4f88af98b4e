"""Page addresses that `reverse` would get wrong, and those of page content as files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

BEFORE_DOTS = re.compile(r"/(?=\.{1,2}(?:/|$))")


@dataclass(frozen=True, slots=True)
class Export:
    """A page's content from REST, with the page's filters."""

    label: str
    url: str


def response_url(run_id: int, repeat: int, case_id: str) -> str:
    """Return the address of a response's page.

    A browser resolves `/../` before it asks, and `%2E%2E` as well; with the slash before the dots
    written `%2F` they are no segment of their own, and the server reads the same path.
    """
    return BEFORE_DOTS.sub("%2F", reverse("response", args=[run_id, repeat, case_id]))


def filtered_url(address: str, filters: Mapping[str, str]) -> str:
    query = urlencode({name: value for name, value in filters.items() if value}, safe=",")
    return f"{address}?{query}" if query else address


def case_url(slug: str, case_id: str) -> str:
    """Return the address of a case's page; see `response_url` for its dots."""
    return BEFORE_DOTS.sub("%2F", reverse("suite_case", args=[slug, case_id]))
