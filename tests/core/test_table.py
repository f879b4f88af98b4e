"""CSV that no spreadsheet runs, and that gives back what was put in; JSONL."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core import table

EVIL = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "＝1",
    "'=1",
    "''@x",
    '=HYPERLINK("http://x","y")',
    "-1,2\r\n=3",
]
FORMULA = "=+-@＝＋－＠\t\r"
TEXTS = st.text(st.characters(codec="utf-8")) | st.sampled_from(EVIL)


def rows_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


def csv_of(*rows: dict[str, object]) -> bytes:
    return b"".join(table.write(table.CSV, list(rows[0]), rows))


@pytest.mark.parametrize("text", EVIL)
def test_no_cell_begins_as_a_formula_does(text: str) -> None:
    [_, [cell]] = rows_of(csv_of({"text": text}))
    assert cell[0] not in FORMULA
    assert table.unescaped(cell) == text


@given(TEXTS)
def test_every_text_comes_back(text: str) -> None:
    assert table.unescaped(table.escaped(text)) == text
    assert table.escaped(text)[:1] not in FORMULA or text == ""


@pytest.mark.parametrize("text", ["", "plain", "'quoted'", "a=b", " =1", "5 - 3"])
def test_a_text_that_is_no_formula_stands_as_it_is(text: str) -> None:
    assert table.escaped(text) == text


@given(st.lists(TEXTS, min_size=2, max_size=4))
def test_cells_of_a_row_come_back_whatever_they_hold(texts: list[str]) -> None:
    row = dict(zip("abcd", texts, strict=False))
    header, *found = rows_of(csv_of(row))
    assert [header, [table.unescaped(cell) for cell in found[0]]] == [list(row), texts]


def test_numbers_are_no_text_and_null_is_empty() -> None:
    data = csv_of({"a": -0.1, "b": None, "c": True, "d": 2.0**-1074, "e": ["=x"], "f": {"z": -1}})
    assert data == b'a,b,c,d,e,f\r\n-0.1,,true,5e-324,"[""=x""]","{""z"":-1}"\r\n'


@pytest.mark.parametrize("form", [table.CSV, table.JSONL])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_refused(form: str, value: float) -> None:
    with pytest.raises(ValueError, match=r"nan|inf|JSON"):
        list(table.write(form, ["a"], [{"a": value}]))


def test_jsonl_is_one_object_a_line_and_escapes_nothing_more() -> None:
    rows = [{"a": text} for text in EVIL]
    lines = b"".join(table.write(table.JSONL, [], rows)).decode().split("\n")
    assert [json.loads(line) for line in lines[:-1]] == rows


@pytest.mark.parametrize("form", [table.CSV, table.JSONL])
def test_rows_are_read_as_they_are_written(form: str) -> None:
    """A part comes out long before the last row is asked for."""
    asked: list[int] = []
    rows = ({"a": "x" * 100, "n": asked.append(number)} for number in range(10_000))
    next(table.write(form, ["a", "n"], rows))
    assert 0 < len(asked) < 1000
