"""What the response page asks of its cells."""

import re
from datetime import datetime

from django import template

from frontend import tokens
from frontend.templatetags import drawing, numbers
from runs.selectors.response import Field, TokenCell

register = template.Library()

DIGEST = re.compile("[0-9a-f]{32,64}")

register.filter("margin_step", tokens.margin_step)


@register.filter
def spoken(cell: TokenCell) -> str:
    """A token's name for those who do not see the marks."""
    margin = "" if cell.margin is None else f", margin {numbers.nats(cell.margin)}"
    return f"{cell.position}: {drawing.drawn_plain(cell.token)}, logprob {numbers.nats(cell.logprob)}{margin}"


@register.filter
def named(field: str) -> str:
    """A field's name for people: `n_cached_tokens` is cached tokens."""
    return field.removeprefix("n_").removesuffix("_seconds").replace("_", " ")


@register.filter
def told(field: Field) -> str:
    """A fact of provenance, each kind in its own form; unknown is said, never left blank."""
    value = field.value
    if value is None or value == "":
        return "unknown"
    if isinstance(value, datetime):
        return numbers.second(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if field.name.endswith("_seconds"):
        return numbers.seconds(value)
    if isinstance(value, str) and DIGEST.fullmatch(value):
        return numbers.digest(value, 8)
    return drawing.drawn(drawing.on_one_line(value))
