"""URL converters for text without NUL, so that an address with one is answered with 404.

PostgreSQL stores no NUL, so no name, id or other text of ours has one.
"""

from django.urls import register_converter
from django.urls.converters import StringConverter


class TextConverter(StringConverter):
    """Match one segment: any text without a slash."""

    regex = r"[^/\x00]+"


class TextPathConverter(StringConverter):
    """Match text on one line that may contain slashes, such as the id of a case."""

    regex = r"[^\x00\n]+"


register_converter(TextConverter, "text")
register_converter(TextPathConverter, "text_path")
