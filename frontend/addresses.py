"""Addresses that `reverse` alone would get wrong."""

import re

from django.urls import reverse

BEFORE_DOTS = re.compile(r"/(?=\.{1,2}(?:/|$))")


def of_response(run_id: int, repeat: int, case_id: str) -> str:
    """The page of one response.

    A browser resolves `/../` before it asks, and `%2E%2E` as well; with the slash before the dots
    written `%2F` they are no segment of their own, and the server reads the same path.
    """
    return BEFORE_DOTS.sub("%2F", reverse("response", args=[run_id, repeat, case_id]))
