"""Foreign files through a mapping: the rules, the mappings that ship, and the real files where they are at hand."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.core.scoring import score
from evalboard.core.suite import CaseDocument, SuiteDocument, parse_suite, read_suite_json, read_suite_text
from evalboard.core.suite.mapping import map_rows, parse_mapping
from tests.recorded import SUITES

ROOT = Path(__file__).resolve().parents[2]
MAPPINGS = ROOT / "runs" / "samples" / "mappings"


def shipped_mapping(name: str) -> Any:
    return parse_mapping(read_suite_json((MAPPINGS / f"{name}.json").read_text()))


def mapped(text: str, mapping: str) -> SuiteDocument:
    return read_suite_text(text, slug="mapped", mapping=shipped_mapping(mapping)).parse()


def written_suite(file: str, mapping: str) -> SuiteDocument:
    return mapped((SUITES / file).read_text(), mapping)


def simple(**case):
    return parse_mapping({"scorer": {"kind": "exact"}, "case": {"id": {"field": "id"}, **case}})


ROW = {"id": "r1", "q": "Which town?", "a": "Oslo", "meta": {"kind": ["geo", "easy"]}}


def test_every_source_reads_what_it_says():
    mapping = simple(
        prompt={"field": "q"},
        target={"field": "a", "as": "list"},
        tags=[{"field": "meta.kind.0"}, {"constant": "imported"}],
        group={"by": "meta.kind.1", "values": {"easy": "g-easy"}},
        scorer={"by": "a", "values": {}, "otherwise": {"kind": "contains"}},
    )
    document = map_rows([ROW], mapping, slug="towns")
    assert document["cases"] == [
        {
            "id": "r1",
            "prompt": "Which town?",
            "target": ["Oslo"],
            "tags": ["geo", "imported"],
            "group": "g-easy",
            "scorer": {"kind": "contains"},
        }
    ]
    assert parse_suite(document).title == "towns"


@pytest.mark.parametrize(
    ("how", "given", "wanted"),
    [
        ("as_is", [1], [1]),
        ("text", 42, "42"),
        ("text", ["a", 1.5], ["a", "1.5"]),
        ("number", "1,234", 1234),
        ("number", ["1.5", 2], [1.5, 2]),
        ("list", "a", ["a"]),
        ("list", ["a"], ["a"]),
        ("one", [1, 2], [[1, 2]]),
        ("calls", [{"name": "f"}], {"calls": [{"name": "f"}]}),
        ("calls", {"name": "f"}, {"calls": [{"name": "f"}]}),
    ],
)
def test_conversions(how, given, wanted):
    mapping = simple(target={"field": "a", "as": how})
    assert map_rows([{"id": "x", "a": given}], mapping, slug="s")["cases"][0]["target"] == wanted


def test_a_conversion_may_be_chosen_by_another_field():
    mapping = simple(target={"field": "a", "as": {"by": "t", "values": {"n": "number", "s": "as_is"}}})
    rows = [{"id": "x", "a": "7", "t": "n"}, {"id": "y", "a": "7", "t": "s"}]
    assert [case["target"] for case in map_rows(rows, mapping, slug="s")["cases"]] == [7, "7"]


def test_a_field_that_a_row_lacks_may_have_another_value_or_be_left_out():
    mapping = simple(group={"field": "g", "otherwise": "none"}, tools={"field": "t", "otherwise": None})
    assert map_rows([{"id": "x"}], mapping, slug="s")["cases"] == [{"id": "x", "group": "none"}]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"id": "x"}, "rows[0]"),
        ({"id": "x", "a": {"not": "text"}}, "rows[0]"),
        ({"id": "x", "a": "y", "extra": 1}, "rows[0].extra"),
    ],
)
def test_rows_that_do_not_fit_are_named(row, field):
    with pytest.raises(InvalidInput) as refused:
        map_rows([row], simple(target={"field": "a", "as": "text"}), slug="s")
    assert list(refused.value.fields) == [field]


@pytest.mark.parametrize("ignored", [["extra"], ["*"]])
def test_fields_are_left_out_only_on_purpose(ignored):
    mapping = parse_mapping({"case": {"id": {"field": "id"}}, "ignore": ignored})
    assert map_rows([{"id": "x", "extra": 1}], mapping, slug="s")["cases"] == [{"id": "x"}]


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"case": {}}, "case"),
        ({"case": {"id": {"field": "id"}}, "colour": 1}, "colour"),
        ({"case": {"id": {"field": "id"}, "answer": {"field": "a"}}}, "case.answer"),
        ({"case": {"id": "id"}}, "case.id"),
        ({"case": {"id": {"field": "a", "constant": 1}}}, "case.id"),
        ({"case": {"id": {"field": 3}}}, "case.id.field"),
        ({"case": {"id": {"by": "a"}}}, "case.id.values"),
        ({"case": {"id": {"constant": 1, "as": "text"}}}, "case.id.as"),
        ({"case": {"id": {"field": "a", "as": "upper"}}}, "case.id.as"),
        ({"case": {"id": {"field": "a", "as": {"constant": "text"}}}}, "case.id.as"),
        ({"case": {"id": {"field": "a", "as": {"by": "b", "values": {"x": "upper"}}}}}, "case.id.as"),
        ({"case": {"id": {"field": "id"}, "tags": [{"field": "a"}, 3]}}, "case.tags[1]"),
        ({"case": {"id": {"field": "id"}}, "ignore": "x"}, "ignore"),
    ],
)
def test_a_wrong_mapping_is_refused_by_path(document, field):
    with pytest.raises(InvalidInput) as refused:
        parse_mapping(document)
    assert list(refused.value.fields) == [field]


def own_tool_row(**changes):
    parameters = {
        "type": "object",
        "properties": {"town": {"type": "string"}, "degrees": {"type": "number"}, "unit": {"type": "string"}},
        "required": ["town", "degrees"],
    }
    return {
        "id": "own/1",
        "category": "heating",
        "messages": [{"role": "user", "content": "Heat the flat in Oslo to 21.5."}],
        "tools": [{"type": "function", "function": {"name": "heat", "parameters": parameters}}],
        "expected": [{"name": "heat", "arguments": {"town": ["Oslo"], "degrees": [21.5], "unit": ["C", ""]}}],
        "scorer": "tool_call",
        **changes,
    }


def own_short_rows():
    asked = {"messages": [{"role": "user", "content": "?"}], "category": "c", "source": "own"}
    return [
        {**asked, "id": "s/1", "expected": ["Oslo"], "scorer": "includes_ci"},
        {**asked, "id": "s/2", "expected": ["Yes"], "scorer": "first_word_ci"},
        {**asked, "id": "s/3", "expected": ["B"], "scorer": "choice_letter"},
        {**asked, "id": "s/4", "expected": ["1,200"], "scorer": "first_number"},
    ]


def jsonl(*rows):
    return "\n".join(json.dumps(row) for row in rows)


def case_score(suite: SuiteDocument, case: CaseDocument, text: str) -> float:
    spec = case.scorer or suite.scorer
    assert spec is not None
    return score(spec, text=text, target=case.target, tools=case.tools).value


@pytest.mark.parametrize(
    ("case_id", "right", "wrong"),
    [
        ("s/1", "It is OSLO, I think", "Bergen"),
        ("s/2", "**yes**, it is", "Well, yes"),
        ("s/3", "The answer is (B)", "A"),
        ("s/4", "About 1200 of them", "about 12"),
    ],
)
def test_short_rows_get_the_scorer_that_their_field_names(case_id, right, wrong):
    suite = mapped(jsonl(*own_short_rows()), "short")
    case = next(case for case in suite.cases if case.id == case_id)
    assert case_score(suite, case, right) == 1
    assert case_score(suite, case, wrong) == 0


def test_a_row_with_an_unknown_scorer_is_named():
    with pytest.raises(InvalidInput) as refused:
        mapped(jsonl({**own_short_rows()[0], "scorer": "bleu"}), "short")
    assert 'scorer = "bleu"' in refused.value.fields["line 1"]


def right_calls(case: CaseDocument) -> list[dict[str, Any]]:
    """Return calls built from the accepted values of a case, optional arguments included."""
    return [{"name": call["name"], "arguments": _first_values(call["arguments"])} for call in case.target["calls"]]


def _first_values(accepted: dict[str, list[Any]]) -> dict[str, Any]:
    given = {}
    for name, values in accepted.items():
        there = [value for value in values if value != ""]
        if there:
            given[name] = _without_accepted_lists(there[0])
    return given


def _without_accepted_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return _first_values(value)
    return [_without_accepted_lists(item) for item in value] if isinstance(value, list) else value


def planted_errors(case: CaseDocument) -> dict[str, str]:
    """Return wrong responses by what is wrong with them, each one step away from the right one."""
    right = right_calls(case)
    wrong: dict[str, Any] = {
        "prose": "Sure! " + json.dumps(right),
        "name": json.dumps([{**right[0], "name": right[0]["name"] + "_x"}, *right[1:]]),
        "one call too many": json.dumps([*right, right[0]]),
        "no call": "[]",
        "cut": json.dumps(right)[:-1],
        "unknown argument": json.dumps(
            [{**right[0], "arguments": {**right[0]["arguments"], "no_such": 1}}, *right[1:]]
        ),
    }
    parameters = case.tools[0]["function"]["parameters"] if case.tools and len(case.tools) == 1 else {}
    for name in parameters.get("required", [])[:1]:
        arguments = right[0]["arguments"]
        without = {key: value for key, value in arguments.items() if key != name}
        wrong["required argument missing"] = json.dumps([{**right[0], "arguments": without}, *right[1:]])
        other = {**arguments, name: "something else entirely"}
        wrong["wrong value"] = json.dumps([{**right[0], "arguments": other}, *right[1:]])
    return wrong


def assert_right_is_1_and_planted_errors_are_0(suite: SuiteDocument) -> int:
    n_planted = 0
    for case in suite.cases:
        assert case_score(suite, case, json.dumps(right_calls(case))) == 1, case.id
        for what, text in planted_errors(case).items():
            assert case_score(suite, case, text) == 0, f"{case.id}: {what}"
            n_planted += 1
    return n_planted


def test_own_tool_rows_are_scored_by_the_leaderboards_rules():
    suite = mapped(jsonl(own_tool_row(), own_tool_row(id="own/2", scorer="tool_calls_unordered")), "bfcl")
    assert assert_right_is_1_and_planted_errors_are_0(suite) == 16
    lenient = '[{"name": "heat", "arguments": {"town": "oslo.", "degrees": 21.5}}]'
    assert case_score(suite, suite.cases[0], lenient) == 1


def test_calls_of_each_category_load_and_are_scored_by_the_leaderboards_rules():
    suite = written_suite("toolcalls.jsonl", "bfcl")
    assert Counter(tag for case in suite.cases for tag in case.tags) == {"simple": 5, "multiple": 3, "parallel": 3}
    assert assert_right_is_1_and_planted_errors_are_0(suite) == 80


def test_the_order_of_parallel_calls_is_free():
    suite = written_suite("toolcalls.jsonl", "bfcl")
    parallel = [case for case in suite.cases if len(case.target["calls"]) > 1]
    assert len(parallel) == 3
    for case in parallel:
        assert case_score(suite, case, json.dumps(right_calls(case)[::-1])) == 1, case.id


def test_short_cases_of_each_scorer_load_and_their_own_targets_are_right():
    suite = written_suite("short.jsonl", "short")
    assert len(suite.cases) == 8
    for case in suite.cases:
        assert [case_score(suite, case, target) for target in case.target] == [1] * len(case.target), case.id
        assert case_score(suite, case, "none of these at all") == 0
