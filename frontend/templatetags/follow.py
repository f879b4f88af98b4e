"""The button on a page by which a person follows what it shows."""

from typing import Any

from django import template

from runs.webhooks.follows import follow_rows

register = template.Library()


@register.inclusion_tag("access/_follow.html", takes_context=True)
def follow_button(context: dict[str, Any], kind: str, name: str, words: str = "Tell me when done") -> dict[str, Any]:
    """Render the button that follows, or stops following, a thing of a kind."""
    request = context.get("request")
    if request is None or not context.get("viewer"):
        return {}
    followed = follow_rows(request.user, kind=kind, name=str(name))
    return {
        "kind": kind,
        "name": name,
        "words": words,
        "followed": followed[0] if followed else None,
        "is_shown": True,
        "csrf_token": context.get("csrf_token"),
    }
