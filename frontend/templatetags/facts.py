"""Render facts of tokens, provenance and manifests."""

import re
from datetime import datetime
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from evalboard.contract.parts import FingerprintNamed
from evalboard.contract.trace import TokenAtPosition
from evalboard.wording.manifest import render_moved
from frontend.templatetags import drawing, numbers

register = template.Library()

BREAK = mark_safe("<wbr>")
DIGEST = re.compile("[0-9a-f]{32,64}")

register.filter("moved_words", render_moved)


def spoken(cell: TokenAtPosition) -> str:
    """Draw a token's name for those who do not see the marks."""
    margin = "" if cell.margin is None else f", margin {numbers.nats(cell.margin)}"
    return f"{cell.position}: {drawing.drawn_plain(cell.drawn)}, logprob {numbers.nats(cell.logprob)}{margin}"


@register.filter
def named(field: str) -> str:
    """Return a field's readable name: `n_cached_tokens` is cached tokens."""
    return field.removeprefix("n_").removesuffix("_seconds").replace("_", " ")


@register.filter
def provenance_value(value: Any, name: str) -> str:
    """Render a provenance fact by its type; unknown ones say so."""
    if value is None or value == "":
        return "unknown"
    if isinstance(value, datetime):
        return numbers.second(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_seconds"):
        return numbers.seconds(value)
    if isinstance(value, str) and DIGEST.fullmatch(value):
        return numbers.digest(value, 8)
    return drawing.drawn(drawing.on_one_line(value))


@register.filter
def stack(fingerprint: FingerprintNamed) -> SafeString:
    """Write a serving stack by its endpoint's name for it, else its label; the digest is on hover."""
    return format_html('<span title="fingerprint {}">{}</span>', fingerprint.digest, drawing.drawn(fingerprint.title))


@register.filter
def stack_in_full(fingerprint: FingerprintNamed) -> SafeString:
    """Write a serving stack by name, with its label if that is another text."""
    name = stack(fingerprint)
    more = drawing.drawn(fingerprint.more)
    return format_html('{} <span class="quiet">{}</span>', name, more) if fingerprint.more else name


@register.filter
def field_path(field: str) -> SafeString:
    """Draw a field's path, which a narrow column may break after its dots."""
    *before, last = field.split(".")
    return format_html_join("", "{}{}", ((drawing.drawn(f"{part}."), BREAK) for part in before)) + drawing.drawn(last)
