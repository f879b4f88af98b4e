"""JSON out of other tools' files: bounded, and every problem named with its file.

More lenient than the product's own documents (`evalboard.core.document`), because nobody can mend a log: a number
that is not finite or that no float64 holds becomes None, and of a key given twice the last counts.
"""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evalboard.core.document import MAX_DEPTH, is_too_deep
from evalboard.core.errors import InvalidInput
from runs.importers.files import LogFile

MAX_BYTES = 512 << 20  # of one file, and of what one file unpacks to
MAX_DOCUMENT_BYTES = 128 << 20  # of one JSON text: a line, a member of a zip, or a whole .json; it is held in memory
MAX_INTEGER_DIGITS = 300  # beyond it neither float64 nor other JSON readers follow


def read_object(file: LogFile) -> dict[str, Any]:
    """Return the one JSON object that a file holds. Raises InvalidInput naming the file."""
    with naming(file):
        if file.size > MAX_DOCUMENT_BYTES:
            raise InvalidInput(_too_large("is one JSON text", MAX_DOCUMENT_BYTES))
        return parse(file.path.read_bytes(), where="")


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
                found = parse(line, where=f"line {number}") if line.strip() else None
            if found is not None:
                yield number, found


def parse(text: bytes | str, *, where: str) -> dict[str, Any]:
    """Return the JSON object in a text. Raises InvalidInput that names `where`, and no file: see `naming`."""
    place = f"{where}: " if where else ""
    value = parse_value(text, where=where)
    if not isinstance(value, dict):
        raise InvalidInput(f"{place}must be a JSON object, and is a {_KINDS.get(type(value), 'value')}")
    return value


def parse_value(text: bytes | str, *, where: str) -> Any:
    """Return the JSON value in a text, whatever it is; raises as `parse` does."""
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
