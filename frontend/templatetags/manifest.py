"""What the fingerprint pages say of manifests."""

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from evalboard.core import fingerprint_words
from frontend.templatetags.drawing import drawn

register = template.Library()

BREAK = mark_safe("<wbr>")

register.filter("moved_words", fingerprint_words.sentence)


@register.filter
def field_path(field: str) -> SafeString:
    """A field's path, which a narrow column may break after its dots."""
    parts = field.split(".")
    return format_html_join("", "{}{}", ((drawn(f"{part}."), BREAK) for part in parts[:-1])) + drawn(parts[-1])
