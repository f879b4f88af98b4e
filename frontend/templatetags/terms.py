"""Explain a term where a page first uses it as a label."""

from typing import Any

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from django.utils.text import slugify

from evalboard.wording.terms import TERMS

register = template.Library()


@register.simple_tag(takes_context=True)
def term(context: dict[str, Any], label: str, name: str = "") -> SafeString:
    """Render a label; the first one of each term on a page opens its definition.

    name: the term, where it is not the label itself. What htmx loads into a page takes ids of its own.
    """
    name = name or label.lower()
    definition, request = TERMS[name], context.get("request")
    if request is None:
        return escape(label)
    explained: set[str] = request.__dict__.setdefault("explained_terms", set())
    if name in explained:
        return escape(label)
    explained.add(name)
    place = f"{'part' if request.headers.get('HX-Request') else 'term'}-{slugify(name)}"
    return format_html(
        '<button type="button" class="term" popovertarget="{0}">{1}</button>'
        '<span class="term-note" id="{0}" popover>{2}</span>',
        place,
        label,
        definition,
    )


@register.simple_tag(takes_context=True)
def label(context: dict[str, Any], text: str) -> SafeString:
    """Render a label out of the code; a term, or what begins with one, opens its definition."""
    first = text.partition(" ")[0].rstrip(",")
    name = next((each for each in (text.lower(), first.lower()) if each in TERMS), "")
    return term(context, text, name) if name else escape(text)
