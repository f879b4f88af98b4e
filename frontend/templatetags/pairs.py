"""Render cells of two-sided pages.

Long rows are built in Python: a template would take ten times as long for the hundreds of tokens on a page.
"""

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from evalboard.contract.compare import Moved
from evalboard.contract.excerpt import AnswerExcerpt
from evalboard.contract.pair import MarginPoint
from evalboard.core.compare import CauseFacts
from evalboard.wording.cause import name_changes
from evalboard.wording.numbers import fixed
from frontend.compare.causes import LOOKS, MARKS, PART_MARKS, CauseMark
from frontend.compare.pair_lines import PairCell
from frontend.shell import tokens
from frontend.templatetags.drawing import drawn_plain, glyph, score_mark, token
from frontend.templatetags.facts import provenance_value, spoken
from frontend.templatetags.numbers import nats
from frontend.templatetags.numbers import points as points_of
from frontend.templatetags.terms import label

register = template.Library()

NEAR = 14  # characters before the token that stay on a narrow screen
OVER = {"flip": "◆ flip", "onset": "◇ drift onset"}
SAID = {"flip": ", flip", "onset": ", drift onset", "": ""}


@register.simple_tag(takes_context=True)
def pair_tokens(context: Any, cells: tuple[PairCell, ...]) -> SafeString:
    """Draw one side's tokens of a line, each a link to its position where positions have addresses."""
    url = context.get("token_url")
    if url is None:
        return mark_safe("".join(map(_unlinked, cells)))  # noqa: S308 (escaped below)
    selected = context["selected"].at
    return mark_safe("".join(_token(cell, selected, url(cell.key)) for cell in cells))  # noqa: S308 (escaped below)


def _token(pair_cell: PairCell, selected: int, url: str) -> str:
    cell = pair_cell.cell
    looks, over = _look(pair_cell)
    here = ' aria-current="true"' if pair_cell.key == selected else ""
    label = escape(spoken(cell) + SAID[pair_cell.mark])
    return (
        f'<a class="token{looks}" href="{escape(url)}" data-position="{pair_cell.key}"'
        f' aria-label="{label}"{here}>{over}{token(cell.drawn)}</a><wbr>'
    )


def _unlinked(pair_cell: PairCell) -> str:
    """Draw a token without a link. Its HTML is short, because a report may have thousands."""
    looks, over = _look(pair_cell)
    text = token(pair_cell.cell.drawn).replace('<span class="drawn">', "<i>").replace("</span>", "</i>")
    if not looks:
        return text
    hidden = f'<span class="visually-hidden">{SAID[pair_cell.mark]}</span>' if pair_cell.mark else ""
    return f'<span class="token{looks}">{over}{text}{hidden}</span>'


def _look(pair_cell: PairCell) -> tuple[str, str]:
    """Return the classes of a token, and the words over it."""
    step = tokens.margin_step(pair_cell.cell.margin)
    shade = f" margin-{step}" if step else ""
    mark = (f" {pair_cell.mark}" if pair_cell.mark else "") + (" elsewhere" if pair_cell.is_odd else "")
    left = (" hangs-left" if pair_cell.hangs_left else "") + (" raised" if pair_cell.is_raised else "")
    if not pair_cell.mark:
        return shade + mark + left, ""
    over = f'<span class="over" aria-hidden="true">{OVER[pair_cell.mark]} {pair_cell.key}</span>'
    return shade + mark + left, over


@register.simple_tag(takes_context=True)
def point_rows(context: Any, points: tuple[MarginPoint, ...]) -> SafeString:
    """Draw the charts' numbers as rows of a table."""
    url = context["token_url"]
    return mark_safe("".join(_row(point, url(point.at)) for point in points))  # noqa: S308 (escaped below)


def _row(point: MarginPoint, url: str) -> str:
    gap = "–" if point.gap is None else f"{point.gap:.3g}"
    drawn_tokens = "".join(f'<td class="mono">{token(each)}</td>' for each in point.tokens)
    margins = "".join(f'<td class="number">{nats(each)}</td>' for each in point.margins)
    return (
        f'<tr><th scope="row" class="number"><a href="{escape(url)}">{point.at}</a></th>'
        f'{drawn_tokens}{margins}<td class="number">{gap}</td></tr>'
    )


@register.filter
def cause_mark(code: str) -> CauseMark:
    return PART_MARKS.get(code, MARKS["unknown"])


@register.simple_tag
@cache
def cause_name(code: str) -> SafeString:
    """Draw a cause as glyph and word, in the ink of its family."""
    mark = cause_mark(code)
    return format_html('<span class="cause family-{}">{} {}</span>', mark.family, glyph(mark.glyph), mark.label)


@register.simple_tag(takes_context=True)
def cause_label(context: dict[str, Any], code: str) -> SafeString:
    """Draw a cause where it is a label; a term among them opens its definition."""
    mark = cause_mark(code)
    words = label(context, mark.label)
    return format_html('<span class="cause family-{}">{} {}</span>', mark.family, glyph(mark.glyph), words)


@register.filter
def also_moved(evidence: CauseFacts) -> str:
    """Name the other differences of a confounded pair; "" for other pairs."""
    return name_changes(evidence)


@register.simple_tag
def boxed(text: str, side: str) -> SafeString:
    """Draw a token in the frame of its side; the end of an answer where there is none."""
    return format_html(
        '<span class="boxed {}">{}</span>',
        side,
        token(text) if text else mark_safe('<span class="drawn">nothing</span>'),
    )


@register.simple_tag
def answer_excerpt(of: AnswerExcerpt | None, n_after: int | None = None) -> SafeString:
    """Render an answer's window on one line, aligned with the other answer's.

    First the text before, which is equal on both sides (narrow screens leave out its start, `far`); then the token, or
    the searched text; then the n_after characters that follow (None: all), which the stylesheet fades out.
    """
    if of is None:
        return format_html('<span class="excerpt faint">{}</span>', "no answer came")
    far, near, after = (
        escape(drawn_plain(text)) for text in (of.before[:-NEAR], of.before[-NEAR:], of.after[:n_after])
    )
    is_cut = " is-cut" if of.is_cut else ""
    far = f'<span class="far">{far}</span>' if far else ""
    near = f'<span class="near">{near}</span>' if near else ""
    own = f'<b class="parts-here">{token(of.token)}</b>' if of.token else ""
    if of.is_hit:
        own = f'<mark class="hit">{escape(drawn_plain(of.token))}</mark>'
    html = f'<span class="excerpt{is_cut}">{far}{near}{own}<span class="after">{after}</span></span>'
    return mark_safe(html)  # noqa: S308 (escaped above)


@register.simple_tag
def passes(points: Sequence[float | None]) -> SafeString:
    """Render how many of a case's repeats were right: tick for all, cross for none, else a wave.

    For graded scores, the mean in points.
    """
    known = [value for value in points if value is not None]
    if not known:
        return format_html('<span class="passes faint">{}</span>', "not scored")
    if not set(known) <= {0.0, 100.0}:
        return format_html('<span class="passes"><b>{}</b> points</span>', points_of(sum(known) / len(known)))
    n = known.count(100.0)
    ink, mark = ("pass", "pass") if n == len(known) else ("fail", "fail") if n == 0 else ("partly", "partly")
    return format_html(
        '<span class="passes"><span class="{}">{}</span> <b>{}</b> of {}</span>', ink, glyph(mark), n, len(known)
    )


@register.simple_tag
@cache
def side_mark(side: str) -> SafeString:
    """Render a side's mark, ring or dot, without the word."""
    return format_html('<span class="side-mark {}">{}</span>', side, glyph("ring" if side == "baseline" else "dot"))


@register.filter
def fact_of(fact: Moved, side: str) -> str:
    """Draw one side of a fact of provenance."""
    return provenance_value(getattr(fact, side), fact.field)


@register.simple_tag
def score_words(points: float | None) -> SafeString:
    """Draw a case's score as mark and word."""
    if points is None:
        return format_html('<span class="faint">{}</span>', "not scored")
    score = points / 100
    word = {1.0: "pass", 0.0: "fail"}.get(score, f"{fixed(score, 2)} of 1")
    return format_html('<span class="keep">{} {}</span>', score_mark(score), word)


@register.simple_tag
def score_move(baseline: float | None, candidate: float | None) -> SafeString:
    """Draw both scores in points, or one where nothing changed."""
    if baseline == candidate:
        return score_words(baseline)
    arrow = '<span class="move keep">{} <span role="img" aria-label="to">→</span> {}</span>'
    return format_html(arrow, score_words(baseline), score_words(candidate))


@register.filter
def look(code: str) -> str:
    """Return a short text for a pair's numeric cause, for pairs of other models or backends."""
    return LOOKS[code]


@register.filter
def backend_words(pair: tuple[str, str]) -> str:
    """Draw A and B as A → B, A and A as A on both sides."""
    one, other = pair
    return f"{one} on both" if one == other else f"{one} → {other}"


@register.filter
def with_part(url: str, part: str) -> str:
    """Return a page's address with a part parameter."""
    return f"{url}{'&' if '?' in url else '?'}part={part}"
