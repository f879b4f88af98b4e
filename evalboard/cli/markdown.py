"""Markdown as GitHub and GitLab show it, in which nothing that a model or a case says is read as markup."""

import re
import unicodedata
from collections.abc import Sequence

# Everything but letters, digits and spaces goes out as a character reference: Markdown reads these as text, never as
# structure, inside a table's cell, too.
NOT_PLAIN = re.compile(r"[^\w ]|_")
# Where GitHub and GitLab find mentions, references and addresses, even in what came as character references.
LINKED = re.compile(r"[@#!%~$&](?=\w)|\.(?=[^\W\d])|:(?=/)")
JOINER = "&#8288;"  # a word joiner: nothing to see, and no link
NOT_IN_ADDRESS = re.compile(r"[^\w\-.~:/?#@!$&*+,=%]", re.ASCII)


def escaped(text: str) -> str:
    """Text of anybody's on one line, as a reader sees it in a sentence or a cell."""
    shown = _drawn(text)
    linked = {found.start() for found in LINKED.finditer(shown)}
    return "".join(_reference(each) + (JOINER if at in linked else "") for at, each in enumerate(shown))


def code(text: str) -> str:
    """The same set as code, in which nothing is taken for a mention either."""
    return f"<code>{''.join(map(_reference, _drawn(text)))}</code>"


def shortened(text: str, n: int) -> str:
    return text if len(text) <= n else text[: n - 1] + "…"


def link(words: str, url: str) -> str:
    """`words` are Markdown already."""
    address = NOT_IN_ADDRESS.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode(errors="replace")), url
    )
    return f"[{words}]({address})" if address.startswith(("http://", "https://")) else words


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are Markdown already; an empty one is a dash."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell or '–' for cell in line)} |" for line in lines)


def _reference(character: str) -> str:
    return f"&#{ord(character)};" if NOT_PLAIN.match(character) else character


def _drawn(text: str) -> str:
    """One line, with what cannot be seen shown by its code: it might turn the line's direction, or hide a part."""
    spaced = " ".join(text.split())
    return "".join(_visible(each) for each in spaced)


def _visible(character: str) -> str:
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return f"\\u{{{ord(character):x}}}"
    return character
