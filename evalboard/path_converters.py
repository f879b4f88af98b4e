"""URL converters for text without NUL, so that an address with one is answered with 404.

PostgreSQL stores no NUL, so no name, id or other text of ours has one.
"""

import re

from django.urls import register_converter, reverse
from django.urls.converters import StringConverter


class TextConverter(StringConverter):
    """Match one segment: any text without a slash."""

    regex = r"[^/\x00]+"


class TextPathConverter(StringConverter):
    """Match text on one line that may contain slashes, such as the id of a case."""

    regex = r"[^\x00\n]+"


BEFORE_DOTS = re.compile(r"/(?=\.{1,2}(?:/|$))")


def escape_dots(url: str) -> str:
    """Escape the slash before `.` and `..` in a path that `reverse` made.

    A browser resolves `/../` before it asks, and `%2E%2E` as well. After `%2F` the dots are no segment of their own,
    and the server reads the same path.
    """
    return BEFORE_DOTS.sub("%2F", url)


def reverse_case(view: str, *args: object) -> str:
    """Return the address of a page whose last argument is a case's id, which may be `..`."""
    return escape_dots(reverse(view, args=args))


register_converter(TextConverter, "text")
register_converter(TextPathConverter, "text_path")
