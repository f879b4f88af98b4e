"""Read a file of cases as a suite's document: JSON, JSONL, CSV, or another tool's JSONL by a mapping."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from evalboard.client.errors import WrongUse
from evalboard.client.suite_parts import SuiteLines
from evalboard.contract.suite_limits import MAX_IMAGE_BYTES
from evalboard.core.document import Problems
from evalboard.core.errors import InvalidInput
from evalboard.core.images import read_image
from evalboard.core.suite import (
    SuiteDocument,
    decode_suite,
    parse_columns,
    parse_mapping,
    parse_scorer,
    parse_suite,
    read_lines,
    read_suite_json,
    read_suite_jsonl,
    read_suite_text,
    refuse_unused_scorer,
)
from evalboard.importers.paths import STDIN

MAPPINGS = Path(__file__).resolve().parents[2] / "runs" / "samples" / "mappings"
FIELDS_NAMED = 10
ADDRESS = re.compile(r"(?i)[a-z][a-z0-9+.-]*:")  # of an image; anything else is a path
UNSCORED = {"kind": "recorded", "source": "no scorer"}
LARGE_BYTES = 16 * 2**20
FORMAT_OF = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "csv"}


def is_large(file: Path) -> bool:
    """Tell whether a file is sent in parts. Raises WrongUse where it cannot be read."""
    try:
        return file.stat().st_size > LARGE_BYTES
    except OSError as problem:
        raise WrongUse(f"{file} cannot be read: {problem.strerror}.") from problem


@contextmanager
def open_lines(file: Path, *, slug: str, title: str, **options: str) -> Iterator[SuiteLines]:
    """Open a large file as lines.

    JSONL is sent unchanged, and the server checks it; other formats are converted first. options: as `load_document`.
    """
    if any(options.values()) or not _is_jsonl(file):
        document = load_document(file, slug=slug, title=title, **options)
        yield SuiteLines(document["slug"], "", _lines_of(document))
        return
    with file.open("rb") as opened:
        yield SuiteLines(slug or _name(file), title, (_with_images(line, file) for line in opened))


def _with_images(line: bytes, file: Path) -> bytes:
    """Return a line of JSONL with the images that it names by their paths. Raises WrongUse."""
    if b'"image_url"' not in line:
        return line
    try:
        case = json.loads(line)
    except ValueError:
        return line  # the server names its mistake
    read_files([case], file)
    return json.dumps(case, ensure_ascii=False).encode() + b"\n"


def read_files(cases: Any, file: Path) -> None:
    """Put images in the place of their paths, which are relative to the suite's file. Raises WrongUse."""
    for case in cases if isinstance(cases, list) else ():
        messages = case.get("messages") if isinstance(case, dict) else None
        for message in messages if isinstance(messages, list) else ():
            content = message.get("content") if isinstance(message, dict) else None
            for part in content if isinstance(content, list) else ():
                given = part.get("image_url") if isinstance(part, dict) else None
                if not isinstance(given, dict) or not isinstance(url := given.get("url"), str):
                    continue  # the suite's reader names its mistake
                if url and not ADDRESS.match(url):
                    given["url"] = _image_at(file.parent / url)


def _image_at(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            data = opened.read(MAX_IMAGE_BYTES + 1)
    except OSError as problem:
        raise WrongUse(f"The image {path} cannot be read: {problem.strerror}.") from problem
    if len(data) > MAX_IMAGE_BYTES:
        raise WrongUse(f"The image {path} is larger than {MAX_IMAGE_BYTES:,} bytes.")
    image = read_image(data)
    if image is None:
        raise WrongUse(f"{path} is no image that can be sent: take PNG, JPEG, GIF or WebP.")
    return image.url


def _lines_of(document: dict[str, Any]) -> Iterator[bytes]:
    header = {name: value for name, value in document.items() if name not in ("slug", "cases")}
    for row in chain([{"suite": header}], document["cases"]):
        yield json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _is_jsonl(file: Path) -> bool:
    return FORMAT_OF.get(file.suffix.lower()) == "jsonl"


def _name(file: Path) -> str:
    return re.sub(r"[^a-z0-9_-]+", "-", file.stem.lower()).strip("-_")


def load_prompts(file: Path) -> SuiteDocument:
    """Read the prompts to send: a suite, or lines with prompt, messages or completion; `-` is stdin.

    Lines that name no scorer are scored by none: their suite has the scorer `recorded`. Raises WrongUse.
    """
    is_stdin = str(file) == STDIN
    name = "stdin" if is_stdin else _name(file)
    text = sys.stdin.read() if is_stdin else _read(file)
    try:
        if not is_stdin and not _is_jsonl(file):
            read = read_suite_text(text, slug=name, form="json")
            read_files(read.document.get("cases"), file)
            return read.parse()
        problems = Problems()
        rows = [row for _, row in read_lines(text, problems)]
        problems.raise_if_any("The prompts cannot be read")
        if rows and (rows[0].keys() == {"suite"} or any("scorer" in row for row in rows)):
            document = read_suite_jsonl(text, slug=name)
            read_files(document["cases"], file)
            return parse_suite(document)
        read_files(rows, file)
        return parse_suite({"slug": name, "scorer": UNSCORED, "cases": list(map(_as_case, rows))})
    except InvalidInput as problem:
        raise WrongUse(f"{file}: {_sentence(problem)}") from problem


def _as_case(row: dict[str, Any]) -> dict[str, Any]:
    """Return a line as a case: without an id of its own, the digest of its prompt names it, as in a log."""
    from evalboard.importers.calls import prompt, prompt_id  # here, as it brings numpy

    fields = ("id", "prompt", "messages", "completion", "tools", "target")
    case = {name: row[name] for name in fields if row.get(name) is not None}
    with suppress(InvalidInput):  # which the suite's own reader names
        sent = {"prompt": case["completion"]} if "completion" in case else case
        case.setdefault("id", prompt_id(prompt(sent), case.get("tools") or ()))
    return case | ({"id": str(case["id"])} if isinstance(case.get("id"), int) else {})


def load_document(
    file: Path, *, slug: str = "", title: str = "", mapping: str = "", scorer: str = "", columns: str = ""
) -> dict[str, Any]:
    """Read a suite document and check its cases like the server. Raises WrongUse, naming all mistakes.

    scorer: of cases that name none: a kind, or JSON. columns: of CSV, such as "prompt=question,target=expected".
    """
    try:
        given = parse_scorer(scorer) if scorer else None
        read = read_suite_text(
            _read(file),
            slug=slug or _name(file),
            title=title,
            form=FORMAT_OF.get(file.suffix.lower(), ""),
            scorer=given,
            columns=parse_columns(columns),
            mapping=parse_mapping(_load_mapping(mapping)) if mapping else None,
        )
        read_files(read.document.get("cases"), file)
        refuse_unused_scorer(read, given)
        read.parse()  # so that a mistake is named before anything is sent
    except InvalidInput as problem:
        raise WrongUse(f"{file}: {_sentence(problem)}") from problem
    document: dict[str, Any] = read.document
    return document | ({"slug": slug} if slug else {})


def _load_mapping(name: str) -> Any:
    """Read a mapping that ships with the product, by name, or from a file."""
    path = Path(name)
    if not path.exists() and (shipped := MAPPINGS / f"{name}.json").exists():
        path = shipped
    if not path.exists():
        shipped_names = ", ".join(sorted(file.stem for file in MAPPINGS.glob("*.json")))
        raise WrongUse(f"There is no mapping {name}: it is a file, or one of {shipped_names}.")
    return read_suite_json(_read(path))


def _read(path: Path) -> str:
    try:
        return decode_suite(path.read_bytes())
    except OSError as problem:
        raise WrongUse(f"{path} cannot be read: {problem.strerror}.") from problem
    except InvalidInput as problem:
        raise WrongUse(f"{path}: {problem.detail}") from problem


def _sentence(problem: InvalidInput) -> str:
    named = [
        f"{name}: {text}" for name, text in list(problem.fields.items())[:FIELDS_NAMED] if text not in problem.detail
    ]
    return "; ".join([problem.detail.rstrip("."), *named]) + "."
