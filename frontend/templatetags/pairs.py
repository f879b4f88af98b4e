"""What the pages of two sides ask of their cells. Long rows are put together here: a template would take ten times
as long for the hundreds of tokens that a page holds.
"""

from typing import Any

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from evalboard.core.cause import CAUSES
from frontend import tokens
from frontend.causes import MARKS, CauseMark
from frontend.pair_address import of_pair
from frontend.pair_lines import PairCell
from frontend.templatetags.drawing import drawn, glyph, score_mark, token
from frontend.templatetags.layout import spoken, told
from frontend.templatetags.numbers import nats
from runs.selectors.comparison import FlipPoint
from runs.selectors.response import Field
from runs.selectors.trace_pair import Fact, Point

register = template.Library()

OVER = {"flip": "◆ flip", "onset": "◇ drift onset"}
SAID = {"flip": ", flip", "onset": ", drift onset", "": ""}


@register.simple_tag(takes_context=True)
def pair_tokens(context: Any, cells: tuple[PairCell, ...]) -> SafeString:
    """One side's tokens of a line, each a link to its position."""
    selected = context["selected"].key
    url = context["token_url"]
    return mark_safe("".join(_token(cell, selected, url(cell.key)) for cell in cells))  # noqa: S308 (escaped below)


def _token(found: PairCell, selected: int, url: str) -> str:
    cell = found.cell
    step = tokens.margin_step(cell.margin)
    shade = f" margin-{step}" if step else ""
    mark = f" {found.mark}" if found.mark else ""
    left = " hangs-left" if found.hangs_left else ""
    over = f'<span class="over" aria-hidden="true">{OVER[found.mark]} {found.key}</span>' if found.mark else ""
    here = ' aria-current="true"' if found.key == selected else ""
    label = conditional_escape(spoken(cell) + SAID[found.mark])
    return (
        f'<a class="token{shade}{mark}{left}" href="{conditional_escape(url)}" data-position="{found.key}"'
        f' aria-label="{label}"{here}>{over}{token(cell.token)}</a><wbr>'
    )


@register.simple_tag(takes_context=True)
def point_rows(context: Any, points: tuple[Point, ...]) -> SafeString:
    """The charts' numbers as rows of a table."""
    url = context["token_url"]
    return mark_safe("".join(_row(point, url(point.key)) for point in points))  # noqa: S308 (escaped below)


def _row(point: Point, url: str) -> str:
    gap = "–" if point.gap is None else f"{point.gap:.3g}"
    return (
        f'<tr><th scope="row" class="number"><a href="{conditional_escape(url)}">{point.key}</a></th>'
        f'<td class="mono">{token(point.token_baseline)}</td><td class="mono">{token(point.token_candidate)}</td>'
        f'<td class="number">{nats(point.margin_baseline)}</td><td class="number">{nats(point.margin_candidate)}</td>'
        f'<td class="number">{gap}</td></tr>'
    )


@register.filter
def cause_mark(code: str) -> CauseMark:
    return MARKS[code if code in CAUSES else "unknown"]


@register.simple_tag
def cause_name(code: str) -> SafeString:
    """A cause as glyph and word, in the ink of its family."""
    mark = cause_mark(code)
    return format_html('<span class="cause family-{}">{} {}</span>', mark.family, glyph(mark.glyph), mark.label)


@register.simple_tag
def boxed(text: str, side: str) -> SafeString:
    """A token in the frame of its side; the end of an answer where there is none."""
    return format_html(
        '<span class="boxed {}">{}</span>',
        side,
        token(text) if text else mark_safe('<span class="drawn">nothing</span>'),
    )


@register.simple_tag
def side_mark(side: str) -> SafeString:
    """Ring or dot; the word stands beside it."""
    return format_html('<span class="side-mark {}">{}</span>', side, glyph("ring" if side == "baseline" else "dot"))


@register.filter
def told_of(fact: Fact, side: str) -> str:
    """One side of a fact of provenance."""
    return told(Field(fact.name, getattr(fact, side)))


@register.simple_tag
def score_words(value: float | None) -> SafeString:
    """A score as mark and word."""
    if value is None:
        return format_html('<span class="faint">{}</span>', "not scored")
    word = {1.0: "pass", 0.0: "fail"}.get(value, f"{value:.2f} of 1")
    return format_html('<span class="keep">{} {}</span>', score_mark(value), word)


@register.simple_tag
def score_move(baseline: float | None, candidate: float | None) -> SafeString:
    """Both scores, or one where nothing changed."""
    if baseline == candidate:
        return score_words(baseline)
    arrow = '<span class="move keep">{} <span role="img" aria-label="to">→</span> {}</span>'
    return format_html(arrow, score_words(baseline), score_words(candidate))


@register.simple_tag(takes_context=True)
def flip_rows(context: Any, flips: tuple[FlipPoint, ...]) -> SafeString:
    """The scatter's numbers as rows of a table, each with a link to its flip."""
    found = context["comparison"]
    runs = found.baseline.run_id, found.candidate.run_id
    return mark_safe("".join(_flip_row(flip, runs) for flip in flips))  # noqa: S308 (escaped below)


def _flip_row(flip: FlipPoint, runs: tuple[int, int]) -> str:
    url = of_pair(*runs, flip.case_id, repeats=(flip.repeat_baseline, flip.repeat_candidate), at=flip.flip)
    numbers = "".join(f'<td class="number">{nats(value)}</td>' for value in (flip.margin, flip.movement, flip.gap))
    return (
        f'<tr><th scope="row" class="mono"><a href="{conditional_escape(url)}">{drawn(flip.case_id)}</a></th>'
        f'<td>{cause_name(flip.cause)}</td><td class="number">{flip.flip}</td>{numbers}</tr>'
    )


@register.filter
def spaced(code: str) -> str:
    """A code as words: near_tie is near tie."""
    return code.replace("_", " ")


@register.filter
def backend_words(pair: str) -> str:
    """ "A-B" is A → B, "A-A" is A on both sides."""
    one, _, other = pair.partition("-")
    return f"{one} on both" if one == other else f"{one} → {other}"


@register.filter
def with_part(url: str, part: str) -> str:
    """The address of one part of a page."""
    return f"{url}{'&' if '?' in url else '?'}part={part}"
