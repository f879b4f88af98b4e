"""The json scorer: parsing, comparing, schemas."""

import json
import time

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.core.scoring import check_spec, score


def points(options, text, target=None):
    return score({"kind": "json", **options}, text=text, target=target).value


@pytest.mark.parametrize(
    ("mode", "text", "target", "value"),
    [
        ("equal", '{"a": 1, "b": 2}', {"b": 2, "a": 1}, 1),
        ("equal", '{"a": 1, "b": 2}', {"a": 1}, 0),
        ("subset", '{"a": 1, "b": 2}', {"a": 1}, 1),
        ("subset", '{"a": {"b": 1, "c": 2}}', {"a": {"b": 1}}, 1),
        ("subset", '{"a": 1}', {"a": 1, "b": 2}, 0),
        ("subset", "[1, 2, 3]", [[1, 2]], 0),
        ("equal", "[1, 2]", [[1, 2]], 1),
        ("equal", "[1, 2]", [1, 2], 0),
        ("equal", "2", [1, 2], 1),
        ("equal", "[2, 1]", [[1, 2]], 0),
        ("equal", "1.0", 1, 1),
        ("equal", "true", 1, 0),
        ("equal", "0", False, 0),
        ("equal", "null", None, 1),
        ("equal", '"1"', 1, 0),
        ("parse", "[]", None, 1),
        ("parse", "[", None, 0),
        ("parse", "", None, 0),
        ("parse", "NaN", None, 0),
        ("parse", "1e999", None, 0),
        ("parse", '```json\n{"a": 1}\n```', None, 0),
    ],
)
def test_modes(mode, text, target, value):
    assert points({"mode": mode}, text, target) == value


@pytest.mark.parametrize(
    "text", ['```json\n{"a": 1}\n```', 'Sure:\n```\n{"a": 1}\n```\nDone', '```json\n{"a": 1}', '{"a": 1}']
)
def test_a_code_fence_is_opened_where_asked(text):
    assert points({"extract": "fence"}, text, {"a": 1}) == 1


def test_strings_are_compared_as_they_stand_unless_normalised():
    assert points({}, '{"a": "X "}', {"a": "x"}) == 0
    assert points({"normalise": {"case": "fold", "whitespace": "strip"}}, '{"a": "X "}', {"a": "x"}) == 1


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        ('{"a": {"b": [1, 2]}}', {"a": {"b": [1, 3]}}, "$.a.b[1] is 2, expected 3"),
        ('{"a b\\n": false}', {"a b\n": None}, '$["a b\\n"] is false, expected null'),
        ('{"a": 1}', {"b": 1}, '$ lacks the key "b"'),
        ('{"a": 1, "c": 1}', {"a": 1}, 'unexpected key "c"'),
        ("[1]", [[1, 2]], "1 items, expected 2"),
        ("The answer is 4", 4, "Not JSON: Expecting value at character 1"),
    ],
)
def test_reasons_say_where_the_value_first_differs(text, target, words):
    assert words in score({"kind": "json"}, text=text, target=target).reason


PERSON = {"type": "object", "required": ["age"], "properties": {"age": {"$ref": "#/$defs/age"}}}
AGED = {**PERSON, "$defs": {"age": {"type": "integer", "minimum": 0}}}


# Thirty definitions, each of which checks the next one twice: a billion checks of one value.
DOUBLING = {f"d{i}": {"anyOf": 2 * [{"$ref": f"#/$defs/d{i + 1}"}]} for i in range(30)} | {"d30": {"type": "string"}}


@pytest.mark.parametrize(("text", "value"), [('{"age": 3}', 1), ('{"age": -3}', 0), ("{}", 0), ("3", 0)])
def test_a_schema_must_fit(text, value):
    assert points({"mode": "parse", "schema": AGED}, text) == value


def test_a_broken_schema_rule_is_named_with_its_place():
    reason = score({"kind": "json", "mode": "parse", "schema": AGED}, text='{"age": -3}', target=None).reason
    assert "$.age" in reason
    assert "minimum" in reason


def test_a_schema_and_a_target_must_both_fit():
    assert points({"schema": AGED}, '{"age": 3}', {"age": 3}) == 1
    assert points({"schema": AGED}, '{"age": 3}', {"age": 4}) == 0
    assert points({"schema": AGED}, '{"age": -3}', {"age": -3}) == 0


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(3, id="not an object"),
        pytest.param({"type": "wurst"}, id="not a schema"),
        pytest.param({"$ref": "https://example.com/schema.json"}, id="another host"),
        pytest.param({"$ref": "other.json"}, id="another file"),
        pytest.param({"$ref": "#/$defs/none"}, id="nothing there"),
        pytest.param({"$id": "https://example.com/", "type": "object"}, id="renames references"),
        pytest.param({"$schema": "http://json-schema.org/draft-07/schema#"}, id="another draft"),
        pytest.param({"patternProperties": {"a": {}}}, id="backtracking names"),
        pytest.param({"pattern": r"(a)\1"}, id="backtracking pattern"),
        pytest.param({"items": {"$ref": "#"}}, id="refers to itself"),
        pytest.param({"enum": ["x" * 30_000]}, id="too long"),
        pytest.param({"$ref": "#/$defs/d0", "$defs": DOUBLING}, id="unfolds without end"),
    ],
)  # fmt: skip
def test_schemas_that_cannot_be_checked_safely_are_refused(schema):
    with pytest.raises(InvalidInput) as refused:
        check_spec({"kind": "json", "schema": schema})
    assert list(refused.value.fields) == ["scorer.schema"]


def test_a_property_may_be_called_like_a_refused_keyword():
    schema = {"properties": {"patternProperties": {"type": "integer"}, "$id": {"type": "integer"}}}
    assert points({"mode": "parse", "schema": schema}, '{"patternProperties": 1}') == 1
    assert points({"mode": "parse", "schema": schema}, '{"patternProperties": "1"}') == 0


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"pattern": "^(a|a)*$"}}, ["a" * 100_000 + "b"]),
        ({"uniqueItems": True}, [{"n": n} for n in range(30_000)] + [{"n": 1.0}]),
    ],
)
def test_schemas_are_checked_in_linear_time(schema, value):
    begin = time.process_time()
    assert points({"mode": "parse", "schema": schema}, json.dumps(value)) == 0
    assert time.process_time() - begin < 2


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 500 + "]" * 500, '{"a":' * 5000, "9" * 10_000, '"\\ud800"'])
def test_hostile_json_scores_without_raising(text):
    assert points({"mode": "equal"}, text, {"a": 1}) == 0
