"""JSON out of other tools' files: bounded, and every problem named with its file.

More lenient than the product's own documents (`evalboard.core.document`), because nobody can mend a log: a number
that is not finite or that no float64 holds becomes None, and of a key given twice the last counts.
"""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from evalboard.core.document import MAX_DEPTH, is_too_deep
from evalboard.core.errors import InvalidInput
from runs.importers import quick_json
from runs.importers.files import LogFile

MAX_BYTES = 512 << 20  # of one file, and of what one file unpacks to
MAX_DOCUMENT_BYTES = 128 << 20  # of one JSON text: a line, a member of a zip, or a whole .json; it is held in memory
MAX_INTEGER_DIGITS = quick_json.DIGITS_AT_MOST  # beyond it neither float64 nor other JSON readers follow

Shape = msgspec.json.Decoder[Any]


def read_object(file: LogFile, shape: Shape | None = None) -> dict[str, Any]:
    """Return the one JSON object that a file holds; `shape` as of `parse`. Raises InvalidInput naming the file."""
    with naming(file):
        if file.size > MAX_DOCUMENT_BYTES:
            raise InvalidInput(_too_large("is one JSON text", MAX_DOCUMENT_BYTES))
        return parse(file.path.read_bytes(), where="", shape=shape)


def read_lines(file: LogFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) for each line that is not blank. Raises InvalidInput naming file and line."""
    if file.size > MAX_BYTES:
        with naming(file):
            raise InvalidInput(_too_large("is a file", MAX_BYTES))
    number = 0
    with file.path.open("rb") as stream:
        while line := stream.readline(MAX_DOCUMENT_BYTES + 1):
            number += 1
            with naming(file):
                if len(line) > MAX_DOCUMENT_BYTES:
                    raise InvalidInput(_too_large(f"line {number} is one", MAX_DOCUMENT_BYTES))
                row = parse(line, where=f"line {number}") if line.strip() else None
            if row is not None:
                yield number, row


def read_rows(file: LogFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place such as "line 3", object). Raises InvalidInput naming file and place."""
    head = file.start
    if head.startswith("["):
        yield from _list_items(file)
    elif head.partition("\n")[0].strip() == "{":
        yield "line 1", read_object(file)
    else:
        for number, row in read_lines(file):
            yield f"line {number}", row


def _list_items(file: LogFile) -> Iterator[tuple[str, dict[str, Any]]]:
    with naming(file):
        if file.size > MAX_DOCUMENT_BYTES:
            raise InvalidInput(
                f"is one list of more than {MAX_DOCUMENT_BYTES >> 20} MiB; one object a line can be more"
            )
        values = parse_value(file.path.read_bytes(), where="")
        for n, value in enumerate(values, start=1):
            if not isinstance(value, dict):
                raise InvalidInput(f"item {n} must be a JSON object")
    for n, value in enumerate(values, start=1):
        yield f"item {n}", value


def parse(text: bytes | str, *, where: str, shape: Shape | None = None) -> dict[str, Any]:
    """Return the JSON object in a text. Raises InvalidInput that names `where`, and no file: see `naming`.

    shape: what is read of it. The keys that it does not name may be left out, which saves most of the time where a log
    holds the same tokens several times. It refuses nothing: what does not fit is returned whole.
    """
    place = f"{where}: " if where else ""
    value = parse_value(text, where=where, shape=shape)
    if not isinstance(value, dict):
        raise InvalidInput(f"{place}must be a JSON object, and is a {_KINDS.get(type(value), 'value')}")
    return value


def parse_value(text: bytes | str, *, where: str, shape: Shape | None = None) -> Any:
    """Return the JSON value in a text, whatever it is; `shape` and what is raised as of `parse`."""
    with suppress(quick_json.NeedsJudging, UnicodeEncodeError):
        encoded = text.encode() if isinstance(text, str) else text
        return quick_json.decode(encoded, shape) if shape else quick_json.decode(encoded)
    return parse_slowly(text, where=where)


def parse_slowly(text: bytes | str, *, where: str) -> Any:
    """Return what `parse_value` does, by the parser that knows why a text is refused; for odd texts, and for tests."""
    place = f"{where}: " if where else ""
    try:
        # A byte order mark may stand first, as some Windows tools write one.
        decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
        value = json.loads(decoded, parse_constant=_nothing, parse_float=_finite, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{place}is not UTF-8 text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{place}is not JSON: {error}") from None
    except RecursionError:
        raise InvalidInput(f"{place}is nested more than {MAX_DEPTH} levels deep") from None
    if is_too_deep(value):
        raise InvalidInput(f"{place}is nested more than {MAX_DEPTH} levels deep")
    return value


@contextmanager
def naming(file: LogFile, place: str = "") -> Iterator[None]:
    """Name the file, and a place in it, in every InvalidInput raised within that names none yet."""
    try:
        yield
    except InvalidInput as error:
        if error.fields:
            raise
        problem = f"{place}: {error.detail}" if place else error.detail
        raise InvalidInput(f"{file.name}: {problem}", fields={file.name: problem}) from error


_KINDS = {list: "list", str: "text", bool: "boolean", int: "number", float: "number", type(None): "null"}


def _too_large(what: str, most: int) -> str:
    return f"{what} of more than {most >> 20} MiB, the most that is read"


def _nothing(_name: str) -> None:
    return None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _integer(text: str) -> int | None:
    return int(text) if len(text) <= MAX_INTEGER_DIGITS else None
