"""White space around and within a response that changes nothing for a reader, and may for a scorer."""

import re
from collections.abc import Callable, Mapping

SPACINGS: Mapping[str, Callable[[str], str]] = {
    "leading_newline": lambda text: f"\n{text}",
    "trailing_newline": lambda text: f"{text}\n",
    "doubled_lines": lambda text: text.replace("\n", "\n\n"),
    "one_line": lambda text: re.sub(r"\s+", " ", text).strip(),
}


def respace(text: str, name: str) -> str:
    """Return a response with its spacing changed; name: one of SPACINGS."""
    return SPACINGS[name](text)
