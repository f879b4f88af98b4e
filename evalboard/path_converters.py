"""Converters of text in addresses, for REST and pages: an address that holds a NUL leads nowhere and answers 404.

PostgreSQL stores no NUL, so no name, id or other text of ours has one.
"""

from django.urls import register_converter
from django.urls.converters import StringConverter


class TextConverter(StringConverter):
    """Match one segment: any text without a slash."""

    regex = r"[^/\x00]+"


class TextPathConverter(StringConverter):
    """Match text on one line that may hold slashes, such as the id of a case."""

    regex = r"[^\x00\n]+"


register_converter(TextConverter, "text")
register_converter(TextPathConverter, "text_path")
