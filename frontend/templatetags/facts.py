"""How facts are drawn: those of a token, of a response's provenance, and of a manifest."""

import re
from datetime import datetime
from typing import Any

from django import template
from django.utils.html import conditional_escape, format_html_join
from django.utils.safestring import SafeString, mark_safe

from evalboard.contract.trace import TokenAtPosition
from evalboard.wording.manifest import render_moved
from frontend.runs.charts import Stem
from frontend.shell import tokens
from frontend.templatetags import drawing, numbers

register = template.Library()

BREAK = mark_safe("<wbr>")
DIGEST = re.compile("[0-9a-f]{32,64}")

register.filter("margin_step", tokens.margin_step)
register.filter("moved_words", render_moved)


@register.filter
def spoken(cell: TokenAtPosition) -> str:
    """Draw a token's name for those who do not see the marks."""
    margin = "" if cell.margin is None else f", margin {numbers.nats(cell.margin)}"
    return f"{cell.position}: {drawing.drawn_plain(cell.drawn)}, logprob {numbers.nats(cell.logprob)}{margin}"


@register.simple_tag
def token_links(cells: tuple[TokenAtPosition, ...], selected: int, marked: frozenset[int]) -> SafeString:
    """Draw a line's tokens, each a link to its position, put together here: a template would take ten times as long.

    marked: positions of tokens that another stack would not have chosen, which the keys stop at as well.
    """
    drawn = (_token_link(cell, selected, is_marked=cell.position in marked) for cell in cells)
    return mark_safe("".join(drawn))  # noqa: S308 (escaped below)


def _token_link(cell: TokenAtPosition, selected: int, *, is_marked: bool) -> str:
    step = tokens.margin_step(cell.margin)
    shade = (f" margin-{step}" if step else "") + (" elsewhere" if is_marked else "")
    narrow = " data-narrow" if shade else ""
    here = ' aria-current="true"' if cell.position == selected else ""
    return (
        f'<a class="token{shade}" href="?at={cell.position}" data-position="{cell.position}"{narrow}'
        f' aria-label="{conditional_escape(spoken(cell))}"{here}>{drawing.token(cell.drawn)}</a><wbr>'
    )


@register.simple_tag
def position_rows(cells: tuple[TokenAtPosition, ...]) -> SafeString:
    """Draw positions as rows of a table."""
    return mark_safe("".join(map(_position_row, cells)))  # noqa: S308 (escaped below)


def _position_row(cell: TokenAtPosition) -> str:
    return (
        f'<tr><th scope="row" class="number"><a href="?at={cell.position}">{cell.position}</a></th>'
        f'<td class="mono">{drawing.token(cell.drawn)}</td><td class="number">{cell.token_id}</td>'
        f'<td class="number">{numbers.nats(cell.logprob)}</td><td class="number">{numbers.nats(cell.margin)}</td></tr>'
    )


@register.simple_tag
def stem_marks(stems: tuple[Stem, ...]) -> SafeString:
    """Draw the stems of a chart of margins."""
    drawn = (
        f'<g><line class="stem" x1="{stem.x}%" x2="{stem.x}%" y1="8" y2="{stem.y}"/>'
        f'<circle class="tip" cx="{stem.x}%" cy="{stem.y}" r="2.5"/></g>'
        for stem in stems
    )
    return mark_safe("".join(drawn))  # noqa: S308 (numbers only)


@register.filter
def named(field: str) -> str:
    """Draw a field's name for people: `n_cached_tokens` is cached tokens."""
    return field.removeprefix("n_").removesuffix("_seconds").replace("_", " ")


@register.filter
def provenance_value(value: Any, name: str) -> str:
    """Draw a fact of provenance, each kind in its own form; unknown is said, never left blank."""
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
def field_path(field: str) -> SafeString:
    """Draw a field's path, which a narrow column may break after its dots."""
    *before, last = field.split(".")
    return format_html_join("", "{}{}", ((drawing.drawn(f"{part}."), BREAK) for part in before)) + drawing.drawn(last)
