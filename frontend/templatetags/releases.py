"""What pages with verdicts on them ask: the word with its glyph, an interval, what a person decided."""

import re

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from frontend.release.verdicts import DECISIONS, OUTCOMES, VERDICTS
from frontend.templatetags.drawing import drawn, glyph
from frontend.templatetags.numbers import MISSING, signed_points, with_times

register = template.Library()

# An interval, a mean with its range, and a range: a line never breaks within one.
NUMBERS = re.compile(r"\[[^\[\]<>]{1,24}\]|(?:−?\d[\d.,]* )?\(?−?\d[\d.,]*–−?\d[\d.,]*|[−+±]\d[\d.,]*")


@register.simple_tag
def verdict(code: str) -> SafeString:
    """Draw a verdict as glyph and word, in its ink."""
    mark = VERDICTS[code]
    return format_html('<span class="verdict verdict-{}">{} {}</span>', mark.glyph, glyph(mark.glyph), mark.label)


@register.filter
def verdict_word(code: str) -> str:
    return VERDICTS[code].label


@register.filter
def numbers_whole(text: str) -> SafeString:
    """Render a sentence so that no line breaks within a number, a range, an interval or a time."""
    return with_times(NUMBERS.sub(r'<span class="keep">\g<0></span>', drawn(text)))


@register.simple_tag
def in_bold(text: str, span: tuple[int, int] | None) -> SafeString:
    """Draw a sentence as `numbers_whole` does, with what its message marks in bold."""
    if span is None:
        return numbers_whole(text)
    parts = text[: span[0]], text[slice(*span)], text[span[1] :]
    return format_html("{}<strong>{}</strong>{}", *map(numbers_whole, parts))


@register.filter
def verdict_ink(code: str) -> str:
    """Draw the class that gives a mark the ink of its verdict."""
    return f"verdict-{VERDICTS[code].glyph}" if code in VERDICTS else ""


@register.filter
def interval(value: tuple[float, float] | None) -> SafeString | str:
    """Format a change's interval in points, never broken across lines: `[−1.1, −0.1]`."""
    if value is None:
        return MISSING
    return format_html('<span class="keep">[{}, {}]</span>', signed_points(value[0]), signed_points(value[1]))


@register.filter
def outcome(code: str) -> str:
    """Return what people made of a verdict, in words."""
    return OUTCOMES[code].label


@register.simple_tag
def outcome_mark(code: str) -> SafeString:
    """Draw the same with its glyph."""
    mark = OUTCOMES[code]
    if not mark.glyph:
        return format_html('<span class="faint">{}</span>', mark.label)
    return format_html(
        '<span class="outcome"><span class="{}">{}</span> {}</span>', mark.ink, glyph(mark.glyph), mark.label
    )


@register.filter
def decided(code: str) -> str:
    """Draw a decision as what happened: approve is Approved."""
    return DECISIONS[code].happened


@register.filter
def decision_means(code: str) -> str:
    return DECISIONS[code].means


@register.filter
def in_fours(digest: str) -> str:
    """Return a digest's first sixteen digits in groups of four, for reading aloud or comparing."""
    return " ".join(digest[place : place + 4] for place in range(0, 16, 4))
