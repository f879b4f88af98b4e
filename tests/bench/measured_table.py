"""The measured table of a page in docs/, between its two marks, written there anew."""

import re
from collections.abc import Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
TABLE = re.compile(f"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)


def write(page: str, lines: Sequence[str]) -> None:
    """Put the table's lines into a page, named as in docs/. Raises ValueError where it has no marks."""
    path = DOCS / page
    text = path.read_text(encoding="utf-8")
    table_of(text)
    path.write_text(TABLE.sub(lambda _: "\n".join(lines) + "\n", text), encoding="utf-8")


def table_of(text: str) -> str:
    """What stands between the two marks. Raises ValueError where they are not there."""
    found = TABLE.search(text)
    if found is None:
        raise ValueError(f"the page has no {BEGIN} and {END}")
    return found.group()
