"""JSON out of files that anybody sent: read within bounds, or refused with the file's name and the place."""

from collections.abc import Callable

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.importers import json_files
from evalboard.importers.files import LogFile

Written = Callable[[str, bytes], LogFile]


def test_what_no_store_can_hold_becomes_nothing() -> None:
    found = json_files.parse('{"a": NaN, "b": [-Infinity, 1e999, 1.5], "c": %s, "d": 7}' % ("9" * 301), where="")
    assert found == {"a": None, "b": [None, None, 1.5], "c": None, "d": 7}


def test_a_byte_order_mark_is_no_problem(written: Written) -> None:
    assert json_files.read_object(written("log.json", b'\xef\xbb\xbf{"a": 1}')) == {"a": 1}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"a": "\xff"}', "is not UTF-8 text (byte 7)"),
        ('{"a": 1}'.encode("utf-16"), "is not UTF-8 text (byte 0)"),
        (b'{"a": ', "is not JSON: Expecting value"),
        (b"", "is not JSON"),
        (b"[1]", "must be a JSON object, and is a list"),
        (b'{"a":' + b"[" * 64 + b"1" + b"]" * 64 + b"}", "is nested more than 64 levels deep"),
        (b'{"a":' * 100_000, "is nested more than 64 levels deep"),
    ],
)
def test_what_cannot_be_read_is_named(written: Written, content: bytes, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        json_files.read_object(written("run/log.json", content))
    assert refused.value.fields.keys() == {"run/log.json"}
    assert refused.value.fields["run/log.json"].startswith(problem)


def test_the_deepest_that_is_read(written: Written) -> None:
    assert json_files.read_object(written("log.json", b'{"a":' + b"[" * 63 + b"1" + b"]" * 63 + b"}"))


def test_lines_are_counted_as_an_editor_counts_them(written: Written) -> None:
    log = written("log.jsonl", b'{"a": 1}\n\n  \n{"a": 2}\r\n{"a": 3}')
    assert list(json_files.read_lines(log)) == [(1, {"a": 1}), (4, {"a": 2}), (5, {"a": 3})]


def test_a_line_that_broke_off_is_named_and_those_before_it_are_read(written: Written) -> None:
    lines = json_files.read_lines(written("log.jsonl", b'{"a": 1}\n{"a": '))
    assert next(lines) == (1, {"a": 1})
    with pytest.raises(InvalidInput) as refused:
        next(lines)
    assert refused.value.fields["log.jsonl"].startswith("line 2: is not JSON")


def test_more_than_the_caps_is_not_read(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    log = written("log.jsonl", b'{"a": 1}\n{"a": 12345}\n')
    monkeypatch.setattr(json_files, "MAX_DOCUMENT_BYTES", 10)
    with pytest.raises(InvalidInput, match=r"log\.jsonl: line 2 is one of more than"):
        list(json_files.read_lines(log))
    with pytest.raises(InvalidInput, match=r"log\.jsonl: is one JSON text of more than"):
        json_files.read_object(log)
    monkeypatch.setattr(json_files, "MAX_BYTES", 20)
    with pytest.raises(InvalidInput, match=r"log\.jsonl: is a file of more than"):
        next(json_files.read_lines(log))


def rows_of(written: Written, n: int, odd: set[int]) -> json_files.OddRows:
    """The rows of a file of n lines of which some are no JSON, read to the end."""
    lines = b"".join(b"{nonsense\n" if number in odd else b'{"a": 1}\n' for number in range(1, n + 1))
    rows = json_files.OddRows(written("log.jsonl", lines))
    assert len(list(json_files.read_rows(rows.file, rows))) == n - len(odd)
    return rows


@pytest.mark.parametrize(("n", "odd"), [(2, {1}), (3, {3}), (100, {7}), (399, {1, 200, 399})])
def test_a_hundredth_of_the_lines_may_be_odd_and_one_always(written: Written, n: int, odd: set[int]) -> None:
    (note,) = rows_of(written, n, odd).settle()
    places = ", ".join(f"line {number}" for number in sorted(odd))
    start = f"Of log.jsonl {len(odd)} of {n} rows cannot be read and are missing: {places}: is not JSON"
    assert note.startswith(start)  # lines with one reason stand before it together


def test_of_too_many_odd_lines_the_first_ten_are_named(written: Written) -> None:
    rows = rows_of(written, 1000, set(range(2, 14)))
    with pytest.raises(InvalidInput) as refused:
        rows.settle()
    problem = refused.value.fields["log.jsonl"]
    assert "line 11: " in problem
    assert "line 12" not in problem
    assert problem.endswith("; and 2 more. Of 1,000 rows 12 cannot be read")


def test_a_file_whose_only_row_is_odd_is_refused(written: Written) -> None:
    with pytest.raises(InvalidInput, match="line 1: is not JSON"):
        rows_of(written, 1, {1}).settle()
