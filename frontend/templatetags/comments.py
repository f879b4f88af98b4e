"""The comments on what a page shows, and the form for another one."""

from typing import Any

from django import template

from frontend.shell.markdown import render_markdown
from runs.comments import comments_on

register = template.Library()
MAX_SHOWN = 50


@register.inclusion_tag("access/_comments.html", takes_context=True)
def comments(context: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    """Render the comments on a run, case or release."""
    request = context.get("request")
    if request is None or not context.get("viewer"):
        return {}
    rows = comments_on(kind, str(name), n=MAX_SHOWN + 1)
    return {
        "rows": [(row, render_markdown(row.text)) for row in rows[-MAX_SHOWN:]],
        "newest": MAX_SHOWN if len(rows) > MAX_SHOWN else None,
        "kind": kind,
        "name": name,
        "viewer": context["viewer"],
        "csrf_token": context.get("csrf_token"),
        "is_shown": True,
    }
