"""What holds for every scorer, whatever a model wrote and whatever a suite wants."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.document import text_problem
from evalboard.core.scoring import KINDS, check_spec, failure_kind, score
from evalboard.core.scoring.kind import MAX_REASON_CHARS
from evalboard.core.scoring.normalise import NORMALISE_OPTIONS, normalise, normalise_option

SPECS = [
    {"kind": "exact"},
    {"kind": "exact", "part": "first_word", "normalise": {"case": "fold", "punctuation": "strip", "unicode": "nfkc"}},
    {"kind": "exact", "part": "last_line", "normalise": {"punctuation": "remove", "whitespace": "remove"}},
    {"kind": "contains", "words": True, "normalise": {"case": "lower"}},
    {"kind": "contains", "require": "all"},
    {"kind": "regex", "pattern": r"(\w+)\W*$", "group": 1},
    {"kind": "regex", "pattern": r"(?P<x>é)?", "group": "x"},
    {"kind": "number", "which": "last", "absolute": 0.5, "relative": 1e-3},
    {"kind": "number", "which": "only", "decimal": ",", "thousands": " "},
    {"kind": "choice", "ignore_case": True, "which": "last"},
    {"kind": "json"},
    {"kind": "json", "mode": "subset", "extract": "fence", "normalise": {"case": "fold"}},
    {"kind": "json", "mode": "parse", "schema": {"type": "object", "required": ["name"], "uniqueItems": True}},
    {"kind": "tool_calls"},
    {"kind": "tool_calls", "extract": "tags", "nested": "accepted", "empty_text_is_optional": True},
    {"kind": "tool_calls", "numbers": "written"},
    {"kind": "tool_calls", "order": "strict", "extra_calls": "allow", "extract": "fence"},
]  # fmt: skip

ANY_TEXT = st.text(st.characters(), max_size=80)  # with control characters and lone surrogates
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
CALLS = st.fixed_dictionaries(
    {"name": st.sampled_from(["f", "g"])},
    optional={"arguments": st.dictionaries(st.sampled_from("xy"), st.lists(ANY_JSON, max_size=2), max_size=2)},
)
TARGETS = ANY_JSON | CALLS | st.fixed_dictionaries({"calls": st.lists(CALLS, max_size=3)}) | st.sampled_from("ABCD")
WORDS = [
    "answer is",
    "A",
    "(b)",
    "1,234.5",
    "-3e7",
    "×10^9",
    "```json\n",
    "<tool_call>",
    '{"name": "f", "arguments": {"x": 1}}',
]
TEXTS = (
    ANY_TEXT
    | ANY_JSON.map(json.dumps)
    | st.lists(st.sampled_from(WORDS) | ANY_TEXT, max_size=6).map(" ".join)
    | st.lists(CALLS, max_size=3).map(json.dumps)
)
TOOLS = st.none() | st.lists(
    st.fixed_dictionaries(
        {"function": ANY_JSON | st.fixed_dictionaries({"name": st.just("f"), "parameters": ANY_JSON})}
    ),
    max_size=2,
)


def test_the_specs_here_cover_every_kind():
    assert {spec["kind"] for spec in SPECS} == {name for name, kind in KINDS.items() if kind.scores_here}


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["kind"])
@given(text=TEXTS, target=TARGETS, tools=TOOLS)
def test_every_text_gets_a_score_and_a_reason_that_can_be_stored(spec, text, target, tools):
    result = score(spec, text=text, target=target, tools=tools)
    assert 0 <= result.value <= 1
    assert 0 < len(result.reason) <= MAX_REASON_CHARS
    assert text_problem(result.reason) is None
    assert result.value == 1 or failure_kind(result.reason) or "target" in result.reason  # what went wrong has a name
    assert score(spec, text=text, target=target, tools=tools) == result


@pytest.mark.parametrize("target", ["a\0b", "a\ud800b", {"name": "\ud800\0", "arguments": {}}])
@pytest.mark.parametrize("kind", ["exact", "contains", "json", "tool_calls"])
def test_what_a_target_holds_never_makes_a_reason_that_cannot_be_stored(kind, target):
    reason = score({"kind": kind}, text='{"name": "f"}', target=target).reason
    assert text_problem(reason) is None


@given(target=st.text(max_size=40))
def test_the_target_itself_is_always_exact(target):
    assert score({"kind": "exact"}, text=target, target=target).value == 1


@given(before=st.text(max_size=20), target=st.text(max_size=20), after=st.text(max_size=20))
def test_a_text_contains_what_stands_in_it(before, target, after):
    spec = {"kind": "contains", "normalise": {"unicode": "keep", "whitespace": "keep"}}
    expected = 1 if target else 0  # an empty target is refused
    assert score(spec, text=before + target + after, target=target).value == expected


@given(value=st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
))  # fmt: skip
def test_json_equals_itself_and_holds_itself(value):
    for mode in ("equal", "subset"):
        assert score({"kind": "json", "mode": mode}, text=json.dumps(value), target=[value]).value == 1


@given(
    text=st.text(max_size=30),
    how=st.fixed_dictionaries(
        {
            "unicode": st.sampled_from(["keep", "nfc"]),
            "quotes": st.sampled_from(["keep", "double"]),
            "case": st.sampled_from(["keep", "lower", "fold"]),
            "punctuation": st.sampled_from(["keep", "strip"]),
            "whitespace": st.sampled_from(["keep", "strip", "collapse", "remove"]),
        }
    ),
)
def test_normalising_twice_changes_nothing_more(text, how):
    filled = check_spec({"kind": "exact", "normalise": how})["normalise"]
    once = normalise(text, filled)
    assert normalise(once, filled) == once


def test_every_kind_with_normalisation_takes_all_of_its_options():
    assert normalise_option().default.keys() == NORMALISE_OPTIONS.keys()
    for kind in KINDS.values():
        if "normalise" in kind.options:
            assert kind.options["normalise"].default.keys() == NORMALISE_OPTIONS.keys()
