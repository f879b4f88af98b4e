"""Draw the tokens of a response and their margins."""

from collections import Counter

from django import template
from django.utils.html import conditional_escape, format_html_join
from django.utils.safestring import SafeString, mark_safe

from evalboard.contract.trace import TokenAtPosition
from frontend.runs.charts import Stem
from frontend.shell import tokens
from frontend.templatetags import drawing, numbers
from frontend.templatetags.facts import spoken

register = template.Library()
MAX_LETTERS = 2  # of a name that is drawn for each repeat


@register.simple_tag
def token_links(cells: tuple[TokenAtPosition, ...], selected: int, marked: frozenset[int]) -> SafeString:
    """Render a line's tokens as links to their positions.

    Done in Python, since a template would take ten times as long. marked: positions of tokens that another stack would
    not have chosen, at which keys stop too.
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
def servers(names: tuple[str, ...], most: str) -> SafeString:
    """Draw who answered each repeat: a letter each, or each longer name once with its number of repeats."""
    parts, named = [(name, name or "–") for name in names], ""
    if any(len(name) > MAX_LETTERS for name in names):
        named = " named"
        parts = [(name, f"{name or '–'} ×{n}" if n > 1 else name or "–") for name, n in Counter(names).items()]
    drawn = ((named if name == most else f"odd{named}", drawing.drawn(text)) for name, text in parts)
    return format_html_join("", '<span class="{}">{}</span>', drawn)


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
