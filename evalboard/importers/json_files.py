"""JSON out of other tools' files: bounded, and every problem named with its file.

More lenient than the product's own documents (`evalboard.core.document`), because nobody can mend a log: a number
that is not finite or that no float64 holds becomes None, and of a key given twice the last counts.
"""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from evalboard.core.document import MAX_DEPTH, is_too_deep
from evalboard.core.errors import InvalidInput
from evalboard.importers import quick_json
from evalboard.importers.files import MAX_BYTES, LogFile

MAX_DOCUMENT_BYTES = 128 << 20  # of one JSON text: a line, a member of a zip, or a whole .json; it is held in memory
MAX_INTEGER_DIGITS = quick_json.DIGITS_AT_MOST  # beyond it neither float64 nor other JSON readers follow

Row = TypeVar("Row")
ODD_ROWS_SHOWN = 10

Shape = msgspec.json.Decoder[Any]


class OddRows:
    """The rows of a file that cannot be read: each is missing, with its place and the reason.

    One never refuses the file. More than a hundredth of all rows do.
    """

    def __init__(self, file: LogFile) -> None:
        self.file = file
        self.n_rows = 0
        self.problems: list[str] = []

    def read(self, place: str, reader: Callable[..., Row], *given: Any) -> Row | None:
        """Return the reader's result for a row; None if it raises InvalidInput, noted with the place."""
        try:
            return reader(*given)
        except InvalidInput as problem:
            self.problems.append(f"{place}: {problem.detail}" if place else problem.detail)
            return None

    def settle(self, *, n_rows: int | None = None) -> list[str]:
        """Return notes on the rows once all were read. Raises InvalidInput, which names the file.

        n_rows: how many there are, where `read_rows` has not counted them.
        """
        n, n_rows = len(self.problems), self.n_rows if n_rows is None else n_rows
        if not n:
            return []
        places: dict[str, list[str]] = {}
        for place, _, reason in (problem.partition(": ") for problem in self.problems[:ODD_ROWS_SHOWN]):
            places.setdefault(reason, []).append(place)
        first = "; ".join(", ".join(at) + (f": {reason}" if reason else "") for reason, at in places.items())
        first += f"; and {n - ODD_ROWS_SHOWN} more" * (n > ODD_ROWS_SHOWN)
        if n == n_rows or n > max(1, n_rows // 100):
            with naming(self.file):
                raise InvalidInput(first if n == 1 else f"{first}. Of {n_rows:,} rows {n:,} cannot be read")
        return [f"Of {self.file.name} {n:,} of {n_rows:,} rows cannot be read and are missing: {first}"]


def read_object(file: LogFile, shape: Shape | None = None) -> dict[str, Any]:
    """Return the JSON object in a file; `shape` as in `parse`. Raises InvalidInput naming the file."""
    with naming(file):
        if file.content_size > MAX_DOCUMENT_BYTES:
            raise InvalidInput(_too_large("is one JSON text", MAX_DOCUMENT_BYTES))
        return parse(file.read(), where="", shape=shape)


def read_lines(file: LogFile, odd: OddRows | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) for each non-blank line. Raises InvalidInput with file and line.

    odd: counts the lines, and takes those without an object.
    """
    if file.content_size > MAX_BYTES:
        with naming(file):
            raise InvalidInput(_too_large("is a file", MAX_BYTES))
    number = 0
    with file.open() as stream:
        while line := stream.readline(MAX_DOCUMENT_BYTES + 1):
            number += 1
            with naming(file):
                if len(line) > MAX_DOCUMENT_BYTES:
                    raise InvalidInput(_too_large(f"line {number} is one", MAX_DOCUMENT_BYTES))
                row = None
                if line.strip() and odd is not None:
                    odd.n_rows += 1
                    row = odd.read("", partial(parse, line, where=f"line {number}"))
                elif line.strip():
                    row = parse(line, where=f"line {number}")
            if row is not None:
                yield number, row


def read_rows(file: LogFile, odd: OddRows | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place such as "line 3", object). Raises InvalidInput with file and place.

    odd: as in `read_lines`.
    """
    head = file.start
    if head.startswith("["):
        yield from _list_items(file, odd or OddRows(file))
    elif head.partition("\n")[0].strip() == "{":
        if odd is not None:
            odd.n_rows = 1
        yield "line 1", read_object(file)
    else:
        for number, row in read_lines(file, odd):
            yield f"line {number}", row


def _list_items(file: LogFile, odd: OddRows) -> Iterator[tuple[str, dict[str, Any]]]:
    with naming(file):
        if file.content_size > MAX_DOCUMENT_BYTES:
            raise InvalidInput(
                f"is one list of more than {MAX_DOCUMENT_BYTES >> 20} MiB; one object a line can be more"
            )
        values = parse_value(file.read(), where="")
        odd.n_rows = len(values)
    for n, value in enumerate(values, start=1):
        if isinstance(value, dict):
            yield f"item {n}", value
        else:
            odd.problems.append(f"item {n} must be a JSON object")


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
    """Return any JSON value in a text; `shape` and errors as in `parse`."""
    with suppress(quick_json.NeedsJudging, UnicodeEncodeError):
        encoded = text.encode() if isinstance(text, str) else text
        return quick_json.decode(encoded, shape) if shape else quick_json.decode(encoded)
    return parse_slowly(text, where=where)


def parse_slowly(text: bytes | str, *, where: str) -> Any:
    """Return the same as `parse_value`, by a parser that explains errors; for odd texts, and tests."""
    place = f"{where}: " if where else ""
    try:
        # A byte order mark may stand first, as some Windows tools write one.
        decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
        value = json.loads(decoded, parse_constant=_nothing, parse_float=_finite, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{place}is not UTF-8 text (byte {error.start}): save it as UTF-8") from None
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
