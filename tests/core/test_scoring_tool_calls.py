"""The tool_calls scorer."""

import json

import pytest

from evalboard.core.scoring import score

TRAIN = {"name": "book_train", "arguments": {"to": ["Oslo", "Oslo S"], "seats": [2]}}
HOTEL = {"name": "book_hotel", "arguments": {"city": ["Oslo"]}}
BOTH = {"calls": [TRAIN, HOTEL]}
TRAIN_CALL = {"name": "book_train", "arguments": {"to": "Oslo", "seats": 2}}
HOTEL_CALL = {"name": "book_hotel", "arguments": {"city": "Oslo"}}

# The matching rules of the Berkeley leaderboard, as options.
LEADERBOARD = {
    "empty_text_is_optional": True,
    "nested": "accepted",
    "numbers": "written",
    "normalise": {"remove": " ,./-_*^", "quotes": "double", "case": "lower"},
}


def scored(calls, target, tools=None, **options):
    text = calls if isinstance(calls, str) else json.dumps(calls)
    return score({"kind": "tool_calls", **options}, text=text, target=target, tools=tools)


def tool(name, properties, required=()):
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return [{"type": "function", "function": {"name": name, "parameters": parameters}}]


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(json.dumps(TRAIN_CALL), id="one call"),
        pytest.param(json.dumps([TRAIN_CALL]), id="a list"),
        pytest.param(json.dumps({"tool_calls": [TRAIN_CALL]}), id="under tool_calls"),
        pytest.param(json.dumps([{"id": "1", "type": "function", "function": TRAIN_CALL}]), id="under function"),
        pytest.param(
            json.dumps({"name": "book_train", "arguments": json.dumps(TRAIN_CALL["arguments"])}), id="arguments as text"
        ),
    ],
)
def test_the_usual_ways_to_write_a_call_are_understood(written):
    result = scored(written, TRAIN)
    assert result.value == 1, result.reason


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({**TRAIN_CALL, "name": "book_bus"}, 'it calls "book_bus", expected "book_train"'),
        ({"name": "book_train", "arguments": {"to": "Bergen", "seats": 2}}, '"to" is "Bergen", expected "Oslo" or'),
        ({"name": "book_train", "arguments": {"to": "Oslo"}}, '"seats" is missing'),
        ({"name": "book_train", "arguments": {"to": "Oslo", "seats": 2, "meal": 1}}, '"meal" is not expected'),
        ({"name": "book_train", "arguments": {"to": "Oslo", "seats": "2"}}, 'is "2", expected 2'),
        ({"name": "book_train", "arguments": {"to": "Oslo", "seats": True}}, "is true, expected 2"),
        ({"arguments": {}}, 'not a call with a "name"'),
        ({"name": "book_train", "arguments": [1]}, "not an object"),
        ("I will book it: {}", "Not JSON"),
        ([], "There are 0 calls, expected 1"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(call, words):
    result = scored(call, TRAIN)
    assert result.value == 0
    assert words in result.reason


@pytest.mark.parametrize("to", ["Oslo", "Oslo S"])
def test_each_argument_may_have_several_accepted_values(to):
    assert scored({"name": "book_train", "arguments": {"to": to, "seats": 2}}, TRAIN).value == 1


def test_a_name_may_have_several_accepted_values():
    target = {"name": ["book_train", "book_rail"], "arguments": {}}
    assert scored({"name": "book_rail", "arguments": {}}, target).value == 1
    assert scored({"name": "book_bus", "arguments": {}}, target).value == 0


def test_any_target_of_a_list_is_right():
    assert scored([HOTEL_CALL], [TRAIN, HOTEL]).value == 1
    assert scored([HOTEL_CALL, TRAIN_CALL], [TRAIN, HOTEL]).value == 0


@pytest.mark.parametrize(
    ("options", "calls", "value"),
    [
        ({"order": "free"}, [HOTEL_CALL, TRAIN_CALL], 1),
        ({"order": "strict"}, [HOTEL_CALL, TRAIN_CALL], 0),
        ({"order": "strict"}, [TRAIN_CALL, HOTEL_CALL], 1),
        ({}, [TRAIN_CALL], 0),
        ({}, [TRAIN_CALL, TRAIN_CALL], 0),
        ({}, [TRAIN_CALL, HOTEL_CALL, HOTEL_CALL], 0),
        ({"extra_calls": "allow"}, [TRAIN_CALL, HOTEL_CALL, HOTEL_CALL], 1),
        ({"extra_calls": "allow", "order": "strict"}, [TRAIN_CALL, TRAIN_CALL, HOTEL_CALL], 1),
        ({"extra_calls": "allow", "order": "strict"}, [HOTEL_CALL, HOTEL_CALL, TRAIN_CALL], 0),
    ],
)
def test_order_and_extra_calls(options, calls, value):
    assert scored(calls, BOTH, **options).value == value


def test_no_call_may_be_the_right_answer():
    assert scored([], {"calls": []}).value == 1
    assert scored([TRAIN_CALL], {"calls": []}).value == 0


def test_free_order_finds_a_pairing_that_first_come_first_served_misses():
    wanted = {"calls": [{"name": "f", "arguments": {"x": [1, 2]}}, {"name": "f", "arguments": {"x": [1]}}]}
    calls = [{"name": "f", "arguments": {"x": 1}}, {"name": "f", "arguments": {"x": 2}}]
    assert scored(calls, wanted).value == 1
    assert scored([calls[1], calls[1]], wanted).value == 0


@pytest.mark.parametrize(
    ("options", "arguments", "value"),
    [
        ({"unknown_arguments": "allow"}, {"to": "Oslo", "seats": 2, "meal": "x"}, 1),
        ({"missing_arguments": "allow"}, {"to": "Oslo"}, 1),
        ({"missing_arguments": "allow"}, {"to": "Bergen"}, 0),
    ],
)
def test_unknown_and_missing_arguments_can_be_allowed(options, arguments, value):
    assert scored({"name": "book_train", "arguments": arguments}, TRAIN, **options).value == value


def test_the_cases_tools_say_what_is_required_and_known():
    target = {"name": "f", "arguments": {"a": [1, ""], "b": [2, ""]}}
    tools = tool("f", {"a": {"type": "integer"}, "b": {"type": "integer"}}, required=["a"])
    options = {"empty_text_is_optional": True}
    assert scored({"name": "f", "arguments": {"a": 1}}, target, tools, **options).value == 1
    assert scored({"name": "f", "arguments": {"b": 2}}, target, tools, **options).value == 0
    ignoring = {"kind": "tool_calls", "tools": "ignore", **options}
    assert score(ignoring, text='{"name": "f", "arguments": {"b": 2}}', target=target, tools=tools).value == 1
    assert scored({"name": "f", "arguments": {"a": 1, "c": 3}}, target, tools, unknown_arguments="allow").value == 0


@pytest.mark.parametrize(
    ("given", "accepted", "schema", "value"),
    [
        pytest.param("New York, N.Y.", ["new york ny"], {}, 1, id="strings without marks and case"),
        pytest.param("it's", ['it"s'], {}, 1, id="quotes"),
        pytest.param("Boston", ["new york"], {}, 0, id="another string"),
        pytest.param(["A-b", "C"], [["ab", "c"]], {}, 1, id="strings in lists"),
        pytest.param(["C", "A-b"], [["ab", "c"]], {}, 0, id="lists keep their order"),
        pytest.param(5, [5.0], {"type": "number"}, 1, id="integer for float"),
        pytest.param(5.0, [5], {"type": "integer"}, 0, id="float for integer"),
        pytest.param(5.0, [5], {"type": "number"}, 1, id="float where a number is asked"),
        pytest.param(
            [1.0], [[1]], {"type": "array", "items": {"type": "integer"}}, 0, id="float in a list of integers"
        ),
        pytest.param(None, [None], {}, 1, id="null"),
        pytest.param(True, [1], {}, 0, id="true is no number"),
        pytest.param({"w": 20, "h": 12}, [{"w": [20], "h": [11, 12]}], {}, 1, id="nested accepted values"),
        pytest.param({"w": 20}, [{"w": [20], "h": [11, 12]}], {}, 0, id="nested key missing"),
        pytest.param({"w": 20}, [{"w": [20], "h": [11, ""]}], {}, 1, id="nested key optional"),
        pytest.param({"w": 20, "x": 1}, [{"w": [20]}], {}, 0, id="nested key unknown"),
        pytest.param([{"w": 20}, {"w": 1}], [[{"w": [20]}, {"w": [1, 2]}]], {}, 1, id="a list of nested objects"),
        pytest.param({"p": ["a", "b"]}, [{"p": [["a", "b"]]}], {}, 1, id="a nested list"),
    ],
)
def test_the_leaderboards_rules(given, accepted, schema, value):
    target, tools = {"name": "f", "arguments": {"x": accepted}}, tool("f", {"x": schema}, required=["x"])
    result = scored({"name": "f", "arguments": {"x": given}}, target, tools, **LEADERBOARD)
    assert result.value == value, result.reason


def test_without_the_leaderboards_rules_nested_values_and_empty_texts_are_plain():
    plain = {"name": "f", "arguments": {"x": [{"w": [20]}], "y": [""]}}
    assert scored({"name": "f", "arguments": {"x": {"w": [20]}, "y": ""}}, plain).value == 1
    assert scored({"name": "f", "arguments": {"x": {"w": 20}, "y": ""}}, plain).value == 0
    assert scored({"name": "f", "arguments": {"x": {"w": [20]}}}, plain).value == 0


@pytest.mark.parametrize(
    ("extract", "text", "value"),
    [
        ("none", f"```json\n{json.dumps(TRAIN_CALL)}\n```", 0),
        ("fence", f"Here:\n```json\n{json.dumps(TRAIN_CALL)}\n```", 1),
        ("tags", f"<tool_call>\n{json.dumps(TRAIN_CALL)}\n</tool_call>", 1),
        ("tags", f"<tool_call>{json.dumps(TRAIN_CALL)}", 1),
        ("tags", json.dumps(TRAIN_CALL), 0),
    ],
)
def test_calls_can_be_taken_out_of_what_stands_around_them(extract, text, value):
    assert scored(text, TRAIN, extract=extract).value == value


def test_tags_hold_several_calls_in_order():
    text = "".join(f"<tool_call>{json.dumps(call)}</tool_call>\n" for call in (HOTEL_CALL, TRAIN_CALL))
    assert scored(text, BOTH, extract="tags").value == 1
    assert scored(text, BOTH, extract="tags", order="strict").value == 0


@pytest.mark.parametrize(
    "target",
    [
        None, 3, "book_train", [], {}, {"name": ""}, {"name": "f", "arguments": {"x": 1}},
        {"name": "f", "arguments": {"x": []}}, {"name": "f", "extra": 1}, {"calls": [], "name": "f"},
        {"calls": [3]}, {"calls": [TRAIN] * 65}, {"name": "f", "arguments": [1]},
    ],
)  # fmt: skip
def test_a_target_of_the_wrong_form_scores_nothing_and_says_why(target):
    result = scored(TRAIN_CALL, target)
    assert result.value == 0
    assert "cannot use this case's target" in result.reason
