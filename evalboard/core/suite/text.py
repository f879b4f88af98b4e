"""Read a suite from text as people have it: JSON, JSONL or CSV; every mistake is named by its line."""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalboard.contract.suite_limits import MAX_TEXT_CHARS
from evalboard.core.document import Problems, read_strict_json
from evalboard.core.errors import InvalidInput
from evalboard.core.scoring import KINDS
from evalboard.core.suite.mapping import CONVERSIONS, SuiteMapping, Unmapped, map_rows
from evalboard.core.suite.suite import (
    COMPLETION,
    SuiteDocument,
    parse_suite,
    read_header,
    read_lines,
    read_suite_json,
)

JSON, JSONL, CSV = FORMATS = ("json", "jsonl", "csv")
INVALID = "The suite is not valid"
MAX_COLUMNS = 100
# The columns that a field of a case is read from, unless others are named: the first that the header has.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "prompt": ("prompt", "question", "input", "instruction"),
    COMPLETION: (),  # in other tools' files a column of this name has answers
    "target": ("target", "expected", "answer", "output", "gold", "ideal"),
    "id": ("id", "case", "case_id", "name"),
    "tags": ("tags", "tag", "category", "topic"),
    "group": ("group",),
}
# What a spreadsheet would compute, or run: =HYPERLINK(…), @SUM(…), =cmd|'…'.
_FORMULA = re.compile(r"\s*(=\s*[+-]?[A-Za-z]|[@+-][A-Z])[\w.]*\s*[(|!]")
_TAG_ENDS = re.compile(r"[;,|]")
csv.field_size_limit(MAX_TEXT_CHARS)


@dataclass(frozen=True, slots=True)
class SuiteText:
    """A suite document and what was understood of its text.

    lines: of each case, none for a JSON document. header: the columns of CSV. columns: field → the column it is read
    from.
    """

    format: str
    document: dict[str, Any]
    lines: tuple[int, ...] = ()
    header: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    def parse(self) -> SuiteDocument:
        """Return the suite. Raises InvalidInput whose fields are lines, such as `line 3.target`."""
        return parse_suite(self.document, lines=self.lines)


def decode_suite(data: bytes) -> str:
    """Return the text of a file. Raises InvalidInput that says what to do where it is none."""
    if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise InvalidInput("This is a spreadsheet or an archive. Save its sheet as “CSV UTF-8” and use that file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise InvalidInput(
            f"Line {line} is not UTF-8: {problem.reason} at byte {problem.start:,}. Save the file as UTF-8."
        ) from None


def detect_format(text: str) -> str:
    """Return which format a text has, by its first line."""
    first = text.removeprefix("\ufeff").lstrip().split("\n", 1)[0].rstrip()
    if not first.startswith("{"):
        return CSV
    return JSONL if first.endswith("}") and '"cases"' not in first else JSON


def read_suite_text(
    text: str,
    *,
    slug: str,
    title: str = "",
    form: str = "",
    scorer: Any = None,
    columns: Mapping[str, str] | None = None,
    mapping: SuiteMapping | None = None,
) -> SuiteText:
    """Read a suite; `parse` of what is returned checks its cases.

    slug: where the text names none. form: one of FORMATS, detected where it is "". scorer: of the cases that name none,
    where the text has none for all. columns: field → column of CSV, in place of COLUMNS; "" is none. mapping: of
    another tool's rows. Raises InvalidInput whose fields are lines.
    """
    form = form or detect_format(text)
    if mapping is not None and form != CSV:
        problems = Problems()
        rows = read_lines(text, problems)
        problems.raise_if_any(INVALID)
        lines = tuple(line for line, _ in rows)
        read = SuiteText(JSONL, map_rows([row for _, row in rows], mapping, slug=slug, lines=lines), lines)
    else:
        read = _READERS[form](text, scorer, columns or {})
    document = {"slug": slug, **read.document} | ({"title": title} if title else {})
    if scorer is not None and document.get("scorer") is None and _lacks_scorer(document.get("cases")):
        document["scorer"] = scorer
    return SuiteText(read.format, document, read.lines, read.header, read.columns)


def refuse_unused_scorer(read: SuiteText, scorer: Any) -> None:
    """Raise InvalidInput where a scorer was given for a text that has no place for it."""
    if scorer is None or read.document.get("scorer") == scorer:
        return
    who = "The file names" if read.document.get("scorer") is not None else "Every case of the file names"
    text = f"{who} a scorer of its own, so this one would not be used. Leave one of them out."
    raise InvalidInput(INVALID, fields={"scorer": text})


def read_suite_jsonl(text: str, *, slug: str, title: str = "") -> dict[str, Any]:
    """Return the suite document in a JSONL text, as `read_suite_text` does."""
    document: dict[str, Any] = read_suite_text(text, slug=slug, title=title, form=JSONL).document
    return document


def parse_scorer(text: str) -> Any:
    """Return a scorer named by its kind, or written as JSON. Raises InvalidInput for text that is no JSON."""
    return {"kind": text} if text in KINDS else read_suite_json(text)


def parse_columns(text: str) -> dict[str, str]:
    """Return field → column from "prompt=question,target=expected". Raises InvalidInput."""
    columns = {}
    for part in filter(None, text.split(",")):
        name, equals, column = part.partition("=")
        if not equals or name.strip() not in COLUMNS:
            raise InvalidInput(
                "The columns are not valid.",
                fields={"columns": f"{part!r} is not FIELD=COLUMN; the fields are {', '.join(COLUMNS)}."},
            )
        columns[name.strip()] = column.strip()
    return columns


def _lacks_scorer(cases: Any) -> bool:
    return isinstance(cases, list) and any(isinstance(case, dict) and case.get("scorer") is None for case in cases)


def _read_document(text: str, scorer: Any, columns: Mapping[str, str]) -> SuiteText:
    document = read_suite_json(text)
    if not isinstance(document, dict):
        raise InvalidInput("A suite is a JSON object; cases one a line are JSONL, in a file that ends in .jsonl.")
    return SuiteText(JSON, document)


def _read_jsonl(text: str, scorer: Any, columns: Mapping[str, str]) -> SuiteText:
    problems = Problems()
    rows = read_lines(text, problems)
    has_header = bool(rows) and rows[0][1].keys() == {"suite"}
    header = read_header(rows.pop(0)[1]["suite"], problems) if has_header else {}
    problems.raise_if_any(INVALID)
    return SuiteText(JSONL, {**header, "cases": [row for _, row in rows]}, tuple(line for line, _ in rows))


def _read_csv(text: str, scorer: Any, columns: Mapping[str, str]) -> SuiteText:
    problems = Problems()
    # Browsers send every line break as two characters; a suite is the same by whatever way it comes.
    rows = _csv_rows(text.removeprefix("\ufeff").replace("\r\n", "\n"), problems)
    _, header = next(rows, (0, []))
    chosen = _choose_columns(header, columns, problems)
    problems.raise_if_any(INVALID)
    places = {name: header.index(column) for name, column in chosen.items()}
    kind = scorer.get("kind") if isinstance(scorer, Mapping) else None
    cases: list[dict[str, Any]] = []
    lines: list[int] = []
    for line, cells in rows:
        if problems.is_full:
            break
        if len(cells) != len(header):
            text = f"has {len(cells)} cells, and the header has {len(header)}; put cells with a comma in quotes"
            problems.add(f"line {line}", text)
            continue
        row = {name: cells[place] for name, place in places.items()}
        cases.append(_as_case(row, len(cases) + 1, kind, f"line {line}", problems))
        lines.append(line)
    if not cases and not problems.fields:
        problems.add("line 2", "is missing: below the columns, each line is a case")
    problems.raise_if_any(INVALID)
    return SuiteText(CSV, {"cases": cases}, tuple(lines), tuple(header), chosen)


_READERS = {JSON: _read_document, JSONL: _read_jsonl, CSV: _read_csv}


def _csv_rows(text: str, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of every row that is not blank, the header first."""
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)  # as spreadsheets of other countries write it
    if first.count(delimiter) >= MAX_COLUMNS:
        problems.add("line 1", f"has {first.count(delimiter) + 1:,} columns; the most is {MAX_COLUMNS}")
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begins = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as problem:
        problems.add(f"line {begins}", f"is not CSV: {problem}; check its quotes")


def _choose_columns(header: list[str], named: Mapping[str, str], problems: Problems) -> dict[str, str]:
    """Return field → column. header: the names of the columns, which are stripped in place."""
    header[:] = [name.strip() for name in header]
    known = ", ".join(name for name in header if name)
    repeated = sorted({name for name in header if name and header.count(name) > 1})
    if repeated:
        problems.add("line 1", f"names the column {repeated[0]!r} twice; give each column a name of its own")
    chosen = {}
    for name, usual in COLUMNS.items():
        if name in named:
            column = named[name]
            if column and column not in header:
                problems.add(f"columns.{name}", f"is {column!r}, which is no column; the columns are {known}")
        else:
            folded = {each.casefold(): each for each in reversed(header)}
            column = next((folded[each] for each in usual if each in folded), "")
        if column:
            chosen[name] = column
    if COMPLETION in chosen:
        chosen.pop("prompt", None)  # a case has one of them
    elif "prompt" not in chosen and not problems.fields:
        names = f"is not known. Line 1 must name the columns, and it names {known}."
        problems.add("columns.prompt", f"{names} Call the one with the prompts prompt")
    return chosen


def _as_case(row: Mapping[str, str], number: int, kind: str | None, place: str, problems: Problems) -> dict[str, Any]:
    for name, cell in row.items():
        if _FORMULA.match(cell):
            problems.add(f"{place}.{name}", "is a formula; save its value, or send the text as JSONL")
    prompt = {name: row[name] for name in ("prompt", COMPLETION) if name in row}
    case: dict[str, Any] = {"id": row.get("id", "").strip() or f"row-{number}", **prompt}
    if row.get("target", "").strip():
        case["target"] = _as_target(row["target"], kind, f"{place}.target", problems)
    tags = [tag.strip() for tag in _TAG_ENDS.split(row.get("tags", "")) if tag.strip()]
    more = {"tags": tags, "group": row.get("group", "").strip()}
    return case | {name: value for name, value in more.items() if value}


def _as_target(cell: str, kind: str | None, place: str, problems: Problems) -> Any:
    """Convert a cell to a target of the scorer: text, a number or JSON.

    A list in JSON means any of its texts.
    """
    is_json = kind in ("json", "tool_calls") or (kind != "number" and cell.lstrip().startswith('["'))
    try:
        return (
            read_strict_json(cell) if is_json else CONVERSIONS["number" if kind == "number" else "text"](cell.strip())
        )
    except (ValueError, Unmapped) as problem:
        problems.add(place, f"is not JSON: {problem}" if is_json else str(problem))
        return None
