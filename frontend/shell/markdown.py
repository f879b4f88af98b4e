"""Render people's Markdown without HTML, images and headings; links are http, https or mailto."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from frontend.templatetags.drawing import drawn

ALLOWED = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
RULES = (
    *("paragraph", "blockquote", "list", "code", "fence"),
    *("text", "newline", "escape", "backticks", "emphasis", "link", "autolink", "entity"),
)


class _Renderer(RendererHTML):
    """Draws hidden characters of texts, and sends no referrer from links."""

    def text(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return drawn(tokens[idx].content) if tokens[idx].content else ""

    def code_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"<code>{drawn(tokens[idx].content)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f'<pre tabindex="0"><code>{drawn(tokens[idx].content)}</code></pre>\n'

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return self.code_block(tokens, idx, options, env)

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        tokens[idx].attrs.pop("title", None)
        tokens[idx].attrSet("rel", "nofollow noopener noreferrer")
        return self.renderToken(tokens, idx, options, env)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer)
    for chain in (parser.block.ruler, parser.inline.ruler):
        chain.enableOnly([name for name in RULES if name in chain.get_all_rules()])
    parser.validateLink = lambda url: ALLOWED.match(url) is not None  # type: ignore[method-assign]
    return parser


def render_markdown(text: str) -> SafeString:
    """Return a text of a person as HTML."""
    return mark_safe(str(_parser().render(text)))  # noqa: S308 (the parser escapes, and takes no HTML)
