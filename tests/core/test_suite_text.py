"""A suite as people have it: which format it is, which columns count, and every mistake at its line."""

import json

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.core.suite import decode_suite, parse_columns, parse_scorer, read_suite_text, refuse_unused_scorer
from evalboard.core.suite.text import detect_format

CONTAINS = {"kind": "contains"}
SHEET = 'question,expected,category\nWhat is 12 + 30?,42,sums;easy\n"Capital, of Norway?",Oslo,\n'


def read(text, **options):
    return read_suite_text(text, slug="towns", **{"scorer": CONTAINS, **options})


def refusal(text, **options):
    with pytest.raises(InvalidInput) as refused:
        read(text, **options).parse()
    return refused.value.fields


def test_a_sheet_is_read_by_the_usual_names_of_its_columns():
    given = read(SHEET)
    assert (given.format, given.lines) == ("csv", (2, 3))
    assert dict(given.columns) == {"prompt": "question", "target": "expected", "tags": "category"}
    first, second = given.parse().cases
    assert (first.id, first.target, first.tags) == ("row-1", "42", ("sums", "easy"))
    assert second.messages[0]["content"] == "Capital, of Norway?"


@pytest.mark.parametrize(
    ("scorer", "cell", "target"),
    [
        ("contains", "7", "7"),
        ("contains", '"[""Oslo"", ""Christiania""]"', ["Oslo", "Christiania"]),
        ("number", '"1,200"', 1200),
        ("json", '"{""age"": 51}"', {"age": 51}),
    ],
)
def test_a_target_is_what_its_scorer_takes(scorer, cell, target):
    given = read(f"id,prompt,target\na,Say it.,{cell}\n", scorer={"kind": scorer})
    assert given.parse().cases[0].target == target


def test_other_columns_are_chosen_and_a_column_left_out():
    text = "id;prompt;in german;gold;tags\na;Say it.;Sag es.;blue;x\n"
    given = read(text, columns={"prompt": "in german", "tags": ""})
    (case,) = given.parse().cases
    assert (case.id, case.messages[0]["content"], case.target, case.tags) == ("a", "Sag es.", "blue", ())


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("id,prompt,target\na,Say it.,blue\nb,Say it.\n", "line 3", "has 2 cells, and the header has 3"),
        ('id,prompt,target\na,"two\nlines",blue\na,Say it.,blue\n', "line 4.id", "is the id of line 2 too"),
        ("id,prompt,target\na,Say it.,\n", "line 2.target", "is missing"),
        ('id,prompt,target\na,"=HYPERLINK(""http://x"")",blue\n', "line 2.prompt", "is a formula"),
        ("id,prompt,target\na,=cmd|' /C calc'!A0,blue\n", "line 2.prompt", "is a formula"),
        ('id,prompt\na,"open\n', "line 2", "is not CSV"),
        ("id,prompt,id\na,b,c\n", "line 1", "names the column 'id' twice"),
        ("one,two\na,b\n", "columns.prompt", "Line 1 must name the columns"),
        ("", "columns.prompt", "Line 1 must name the columns"),
        ("id,prompt,target\n", "line 2", "each line is a case"),
        (",".join(f"c{n}" for n in range(10_000)), "line 1", "has 10,000 columns; the most is 100"),
        (
            '{"id": "a", "prompt": "Say it.", "target": "blue"}\n\n{"id": "b", "target": 7}\n',
            "line 3.prompt",
            "exactly",
        ),
        ('{"id": "a", "prompt": "x", "target": "y"}\n{"id": \n', "line 2", "is not JSON"),
    ],
)
def test_a_mistake_is_named_by_its_line(text, place, words):
    assert words in refusal(text)[place]


def test_a_number_that_is_none_and_a_column_that_is_none_are_named():
    assert refusal("id,prompt,target\na,x,many\n", scorer={"kind": "number"})["line 2.target"].startswith('"many"')
    assert "is 'gold'" in refusal("id,prompt\na,x\n", columns={"target": "gold"})["columns.target"]


@pytest.mark.parametrize("text", ["id,prompt,target\na,-5 + 3?,-2\n", "id,prompt,target\na,= or ==?,==\n"])
def test_what_only_looks_like_a_formula_is_text(text):
    assert read(text).parse().cases[0].id == "a"


def test_the_format_is_known_from_the_first_line():
    case = {"id": "a", "prompt": 'Which "cases"?', "target": "b"}
    document = {"slug": "towns", "scorer": CONTAINS, "cases": [case]}
    assert detect_format(json.dumps(case)) == "jsonl"
    assert detect_format(json.dumps(document)) == detect_format(json.dumps(document, indent=1)) == "json"
    assert detect_format(SHEET) == detect_format("\ufeff" + SHEET) == "csv"
    assert read(json.dumps(document, indent=1), scorer=None).parse().digest == read(json.dumps(case)).parse().digest


def test_a_sheet_is_the_same_suite_from_a_browser_and_from_a_file():
    sheet = 'prompt,target\n"One\nline?",1\n'
    assert read(sheet.replace("\n", "\r\n")).parse().digest == read(sheet).parse().digest


def test_a_scorer_is_for_cases_without_one():
    own = json.dumps({"id": "a", "prompt": "x", "target": "y", "scorer": {"kind": "exact"}})
    assert read(own).parse().scorer is None
    assert read('{"suite": {"scorer": {"kind": "exact"}}}\n' + own).parse().scorer["kind"] == "exact"
    named_by_none = '{"suite": {"scorer": {"kind": "exact"}}}\n{"id": "a", "prompt": "x", "target": "y"}'
    suite = read(named_by_none, scorer={"kind": "contains"}).parse()
    assert suite.scorer["kind"] == "exact", "the text's own is not replaced by the one that is given"
    with pytest.raises(InvalidInput) as unused:
        refuse_unused_scorer(read(named_by_none), CONTAINS)
    assert unused.value.fields["scorer"].startswith("The file names a scorer of its own, so this one would not be used")
    with pytest.raises(InvalidInput) as unused:
        refuse_unused_scorer(read(own), CONTAINS)
    assert unused.value.fields["scorer"].startswith("Every case of the file names a scorer of its own")
    for text, scorer in ((SHEET, CONTAINS), (named_by_none, {"kind": "exact"}), (named_by_none, None)):
        refuse_unused_scorer(read(text, scorer=scorer), scorer)
    assert parse_scorer("exact") == {"kind": "exact"}
    assert parse_scorer('{"kind": "number", "which": "last"}')["which"] == "last"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\x03\x04sheet", "Save its sheet as"),
        (b"id,prompt\na,\xff", "Line 2 is not UTF-8: invalid start byte at byte 12"),
        ("id,prompt\na,x".encode("utf-16"), "Save the file as UTF-8"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_what_to_do(data, words):
    with pytest.raises(InvalidInput, match=words):
        decode_suite(data)


def test_a_column_of_completions_is_read_where_it_is_named():
    text = "prompt,completion\nWhich town?,Oslo is\n"
    assert dict(read(text).columns) == {"prompt": "prompt"}
    given = read(text, columns={"completion": "completion"})
    assert [(case["completion"], "prompt" in case) for case in given.document["cases"]] == [("Oslo is", False)]


def test_columns_are_named_field_by_field():
    assert parse_columns("prompt=question, target=expected") == {"prompt": "question", "target": "expected"}
    with pytest.raises(InvalidInput) as refused:
        parse_columns("answer=gold")
    assert "the fields are prompt" in refused.value.fields["columns"]
