"""Render untrusted text (of models, suites, engines) so that nothing in it is hidden.

Control characters would vanish, and bidirectional ones would reorder what follows, so both are shown as their code.
Everything else is escaped as usual.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

from django import template
from django.apps import apps
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from evalboard.core.answer import split_parts
from evalboard.core.images import STORED, find_images, prompt_text
from evalboard.core.scoring import shown
from evalboard.wording.case import LINKED_IMAGE
from evalboard.wording.manifest import describe_batching
from evalboard.wording.numbers import fixed
from frontend.shell import addresses

register = template.Library()

# C0 but tab and newline, DEL and C1, soft hyphen, Arabic letter mark, zero-width and bidi marks,
# line and paragraph separators, embeddings, overrides and isolates, byte order mark, tag characters.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
DRAWN_IN_TOKENS = re.compile("[·⏎]|⟨[^⟩]*⟩")
ADVICE_LENGTH = 120
MIN_PREFIX, MAX_WHOLE_NAME, MAX_NAME = 4, 16, 36  # characters
BREAKS = re.compile("(?<=[/_])")


@register.filter
def drawn(value: Any) -> SafeString:
    """Escape a text with its own direction; hidden characters are shown as `⟨U+202E⟩`."""
    text = str(value)
    safe = HIDDEN.sub(lambda hit: f'<span class="mark">⟨U+{ord(hit.group()):04X}⟩</span>', escape(text))
    return mark_safe(f"<bdi>{safe}</bdi>")  # noqa: S308 (escaped above)


@register.filter
def batching(batch_class: str) -> str:
    return describe_batching(batch_class)


@register.filter
def drawn_plain(value: Any) -> str:
    """Render the same for attributes and titles, without elements."""
    return HIDDEN.sub(lambda hit: f"⟨U+{ord(hit.group()):04X}⟩", str(value))


@register.filter
def shortened(value: Any, length: int = ADVICE_LENGTH) -> str:
    """Draw one line of at most `length` characters, for tables."""
    text = " ".join(str(value).split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


@register.filter
def spaced(value: Any, length: int = ADVICE_LENGTH) -> str:
    """Draw the same, quoted where a page would fold or drop its spaces."""
    text = on_one_line(value)
    return shortened(text, length) if text == " ".join(text.split()) else shown(text, length)


@register.filter
@lru_cache(maxsize=8192)  # a text repeats most of its tokens
def token(value: str) -> SafeString:
    """Render a readable token of `core.trace.vocabulary`; added marks are faint and are not copied."""
    safe = conditional_escape(drawn_plain(value))
    marked = DRAWN_IN_TOKENS.sub(lambda hit: f'<span class="drawn">{hit.group()}</span>', str(safe))
    return mark_safe(marked)  # noqa: S308 (escaped above)


@register.filter
def as_json(value: Any) -> str:
    """Return JSON with sorted keys for reading; a string is returned unchanged."""
    if isinstance(value, str):
        return value
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


@register.filter
def on_one_line(value: Any) -> str:
    """Draw a target or setting on one line."""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


@register.filter
def content(message: dict[str, Any]) -> str:
    """Draw the text of a prompt's message, with [image] for images; tool calls as JSON."""
    text = message.get("content")
    if isinstance(text, list) and not message.get("tool_calls"):
        return prompt_text(text)
    if isinstance(text, str) and not message.get("tool_calls"):
        return text
    return as_json({key: value for key, value in message.items() if key != "role"})


@register.filter
def images(messages: list[dict[str, Any]] | tuple[dict[str, Any], ...]) -> SafeString:
    """Draw the images of messages as thumbnails with their digests; of an image elsewhere its address."""
    return format_html_join(
        "", '<figure class="prompt-image">{}</figure>', ((_image(url),) for url in find_images(messages))
    )


def _image(url: str) -> SafeString:
    if not url.startswith(STORED):
        return format_html('<figcaption><span class="mono">{}</span> {}</figcaption>', drawn_plain(url), LINKED_IMAGE)
    name = url.removeprefix(STORED)
    caption = '<figcaption class="mono">sha256 {}</figcaption>'
    drawn = '<a href="{}"><img src="{}" alt="image {}" loading="lazy"></a>'
    address = reverse("image", args=[name])
    return format_html(drawn + caption, address, address, name[:8], name[:16])


@register.filter
def words_of(answer: str) -> str:
    """Return an answer's text without its tool calls."""
    return split_parts(answer).text


@register.filter
def calls_of(answer: str) -> list[str]:
    """Return the tool calls of an answer, each as JSON on one line."""
    return [on_one_line(call) for call in split_parts(answer).calls]


@register.filter
def first_line(value: Any) -> str:
    """Return the first line of an engine's message, without a traceback."""
    return next(iter(str(value).strip().splitlines()), "")


@register.simple_tag
def response_url(run_id: int, repeat: int, case_id: str) -> str:
    return addresses.response_url(run_id, repeat, case_id)


def common_prefix(names: Sequence[str]) -> str:
    """Return what all names begin with, up to a separator; "" if that is short, or the names fit a column."""
    if len(names) < 2 or max(map(len, names)) <= MAX_WHOLE_NAME:
        return ""
    first, last = min(names), max(names)  # what these two share, all between them do
    n = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    end = max(first.rfind(mark, 0, n) for mark in "/_-.:") + 1
    return first[:end] if end >= MIN_PREFIX else ""


@register.simple_tag
def case_name(name: str, prefix: str = "") -> SafeString:
    """Draw an id without the prefix that its neighbours share, cut in the middle, broken at `/` and `_`."""
    own = name.removeprefix(prefix)
    if len(own) > MAX_NAME:
        own = f"{own[: MAX_NAME // 2]}…{own[-MAX_NAME // 2 :]}"
    parts = BREAKS.split(drawn_plain(own))
    shown = "<wbr>".join(escape(part) for part in parts)
    return mark_safe(f"<bdi>{'…' if own != name and not own.startswith('…') and prefix else ''}{shown}</bdi>")  # noqa: S308


@register.simple_tag
def case_url(slug: str, case_id: str) -> str:
    return addresses.case_url(slug, case_id)


def sprite_address() -> str:
    """Return the address of the glyphs; "" if they are in the page itself, because no server serves files."""
    return static("shell/sprite.svg") if apps.ready else ""


@register.simple_tag
@lru_cache(maxsize=1024)  # a page draws hundreds, of a few kinds
def glyph(name: str, label: str = "") -> SafeString:
    """Render a glyph of the sprite.

    With a label it is read aloud by screen readers, else it is decoration next to a word.
    """
    href = f"{sprite_address()}#{name}"
    if label:
        return format_html('<svg class="glyph" role="img" aria-label="{}"><use href="{}"/></svg>', label, href)
    return format_html('<svg class="glyph" aria-hidden="true"><use href="{}"/></svg>', href)


@register.simple_tag
def score_mark(value: float | None, repeat: int | None = None) -> SafeString:
    """Draw pass, fail or a part of it as a glyph with a name."""
    place = "" if repeat is None else f"repeat {repeat}: "
    if value is None:
        return format_html('<span class="missing" role="img" aria-label="{}missing">–</span>', place)
    if value == 1.0:
        return format_html('<span class="pass">{}</span>', glyph("pass", f"{place}pass"))
    if value == 0.0:
        return format_html('<span class="fail">{}</span>', glyph("fail", f"{place}fail"))
    return format_html('<span class="partly">{}</span>', glyph("partly", f"{place}{fixed(value, 2)} of 1"))
