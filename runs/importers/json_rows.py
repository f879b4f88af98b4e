"""Files of many JSON objects, however the tool put them: one a line, in one list, or a single one."""

from collections.abc import Iterator
from typing import Any

from evalboard.core.errors import InvalidInput
from runs.importers.files import LogFile
from runs.importers.json_files import MAX_DOCUMENT_BYTES, naming, parse_value, read_lines, read_object


def read_rows(file: LogFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place such as "line 3", object). Raises InvalidInput naming file and place."""
    head = file.start
    if head.startswith("["):
        yield from _of_list(file)
    elif head.partition("\n")[0].strip() == "{":
        yield "line 1", read_object(file)
    else:
        for number, found in read_lines(file):
            yield f"line {number}", found


def _of_list(file: LogFile) -> Iterator[tuple[str, dict[str, Any]]]:
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
