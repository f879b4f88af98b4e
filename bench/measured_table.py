"""The measured table of a page in docs/, between its two marks, written there anew."""

import re
from collections.abc import Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def write(page: str, lines: Sequence[str], *, name: str = "measured") -> None:
    """Put the table's lines into a page, named as in docs/, at its marks of that name. Raises ValueError where it has
    none.
    """
    path = DOCS / page
    text = path.read_text(encoding="utf-8")
    table_of(text, name=name)
    path.write_text(_between(name).sub(lambda _: "\n".join(lines) + "\n", text), encoding="utf-8")


def table_of(text: str, *, name: str = "measured") -> str:
    """What stands between the two marks. Raises ValueError where they are not there."""
    found = _between(name).search(text)
    if found is None:
        raise ValueError(f"the page has no <!-- {name}: begin --> and end")
    return found.group()


def _between(name: str) -> re.Pattern[str]:
    begin, end = (re.escape(f"<!-- {name}: {which} -->") for which in ("begin", "end"))
    return re.compile(f"(?<={begin}\n).*?(?={end})", re.DOTALL)
