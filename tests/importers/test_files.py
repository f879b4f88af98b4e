"""The beginning of a file tells its format, in time that follows its length whatever stands in it."""

import json
import time
from pathlib import Path

import pytest

from evalboard.core.document import MAX_DEPTH
from evalboard.importers.files import MAX_FIRST_BYTES, LogFile, first_object_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1, "b": {"c": [1, 2', {"a": 1, "b": {"c": [1]}}),
        ('[{"a": "x,]}"}, {"b": 1}]', {"a": "x,]}"}),
        ('{"a": 1, "b": ]', {"a": 1}),
        ('{"a": "no end', {}),
        ('{"a": 1, "b": ' + "[" * 500, {"a": 1, "b": json.loads("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))}),
        ("diary", {}),
        ('{"a": 1, "b\n{"a": 2}\n{"a": 3}', {"a": 2}),
        ('started at noon\n\n{"a": 2}\n', {"a": 2}),
        ('{\n{"a": 2}\n', {}),
        ('started\nended\n{"a": 2}\n', {}),
        ('{"a": 1, "b": \n[1, 2], "c": ', {"a": 1, "b": [1, 2]}),
        ("[[[", {}),
    ],
)
def test_the_fields_that_are_complete_are_read(text: str, found: object) -> None:
    assert first_object_of(text) == found


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_long_first_line_tells_its_format_to_its_end(tmp_path: Path, end: str) -> None:
    """A prompt of 100 kB stands before the fields that tell the format."""
    row = {"case": "1", "prompt": "a" * 100_000, "answer": "b", "score": 1}
    (path := tmp_path / "long.jsonl").write_text(json.dumps(row) + end)
    assert LogFile("long.jsonl", path).first_object == row


def test_of_a_document_without_lines_the_beginning_is_read(tmp_path: Path) -> None:
    (path := tmp_path / "long.json").write_text('{"a": 1, "b": "' + "a" * MAX_FIRST_BYTES)
    assert LogFile("long.json", path).first_object == {"a": 1}


@pytest.mark.parametrize("unit", ["[", '{"a":', '[{"a":', '[1,"', "[]" * 2])
def test_nothing_takes_longer_than_its_length(unit: str) -> None:
    """The best of three: twenty times the text took four hundred times as long, and 148 s for 64 KiB of brackets."""
    short, long = (seconds_for(unit, n_bytes) for n_bytes in (3200, 64_000))
    assert long < 100 * max(short, 1e-5)


def seconds_for(unit: str, n_bytes: int) -> float:
    text = '{"a":' + unit * (n_bytes // len(unit))
    return min(elapsed(text) for _ in range(3))


def elapsed(text: str) -> float:
    began = time.process_time()
    first_object_of(text)
    return time.process_time() - began
