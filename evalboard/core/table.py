"""Rows as CSV or JSONL. In CSV, no cell is one that a spreadsheet would take for a formula.

CSV is RFC 4180: a header, CRLF, UTF-8 without a byte order mark. A text that begins with = + - @, one of their
full-width forms, a tab or a carriage return is written with an apostrophe before it, and so is one that has only
apostrophes before such a character: taking one away (`unescaped`) gives every text back. Numbers stand as they are.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evalboard.core.digest import canonical_json

CSV, JSONL = "csv", "jsonl"
PART_CHARS = 1 << 16  # of text that is put together before it is passed on

_FORMULA = re.compile("'*[=+\\-@＝＋－＠\t\r]")
_ESCAPED = re.compile("'+[=+\\-@＝＋－＠\t\r]")

Row = Mapping[str, Any]


def escaped(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text


def unescaped(cell: str) -> str:
    """Return the text that `escaped` was given."""
    return cell[1:] if _ESCAPED.match(cell) else cell


def write(form: str, names: Sequence[str], rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield the rows as "csv" with the named columns in order, or as "jsonl" with all fields of a row.

    In CSV, null is an empty cell, true and false are words, and a list or an object is its JSON. Raises ValueError
    for a number that is not finite.
    """
    return _encoded(_csv_lines(names, rows) if form == CSV else map(_json_line, rows))


def _encoded(lines: Iterable[str]) -> Iterator[bytes]:
    buffer: list[str] = []
    n_chars = 0
    for line in lines:
        buffer.append(line)
        n_chars += len(line)
        if n_chars >= PART_CHARS:
            yield "".join(buffer).encode()
            buffer, n_chars = [], 0
    if buffer:
        yield "".join(buffer).encode()


def _csv_lines(names: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    page = io.StringIO(newline="")
    writer = csv.writer(page)
    for cells in _with_header(names, rows):
        writer.writerow(cells)
        yield page.getvalue()
        page.seek(0)
        page.truncate()


def _with_header(names: Sequence[str], rows: Iterable[Row]) -> Iterator[list[Any]]:
    yield list(names)
    for row in rows:
        yield [_cell(row[name]) for name in names]


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | dict):
        return canonical_json(value).decode()
    if isinstance(value, float) and value - value != 0:
        raise ValueError(f"{value} is no number that a table can hold")
    return value


def _json_line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
