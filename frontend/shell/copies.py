"""Buttons that copy what a page is about: an id, a prompt, an answer, its tokens."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.contract.trace import TokenAtPosition
from frontend.templatetags.drawing import content

MAX_COPIED = 50_000  # characters; REST has longer texts whole


@dataclass(frozen=True, slots=True)
class Copy:
    label: str
    text: str


def list_copies(*named: tuple[str, str]) -> tuple[Copy, ...]:
    """Return a button for each text that is there and not too long for a page."""
    return tuple(Copy(label, text) for label, text in named if 0 < len(text) <= MAX_COPIED)


def write_prompt(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return a lone message as its text, several with their roles."""
    texts = [(str(message.get("role")), content(dict(message))) for message in messages]
    return texts[0][1] if len(texts) == 1 else "\n\n".join(f"{role}: {text}" for role, text in texts)


def write_tokens(tokens: Iterable[TokenAtPosition]) -> str:
    """Return a line for each token: its position, its id and its readable form."""
    return "\n".join(f"{token.position}\t{token.token_id}\t{token.drawn}" for token in tokens)
