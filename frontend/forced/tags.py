"""Tags of what forced scoring adds to other pages."""

from collections.abc import Sequence

from django import template

from frontend.forced.parts import Elsewhere, TokenElsewhere

register = template.Library()


@register.simple_tag
def token_elsewhere(strips: Sequence[Elsewhere], at: int) -> tuple[TokenElsewhere, ...]:
    """Return one token of a response on each stack that scored it."""
    return tuple(strip.token(at) for strip in strips if at < strip.n_tokens)
