"""The scorers exact, contains and regex, and the normalisation they share."""

import time

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.core.scoring import check_spec, score

FOLD = {"case": "fold"}


def points(spec, text, target):
    return score(spec, text=text, target=target).value


@pytest.mark.parametrize(
    ("normalise", "text", "target", "value"),
    [
        pytest.param({}, " Oslo\n", "Oslo", 1, id="outer whitespace is dropped by default"),
        pytest.param({}, "oslo", "Oslo", 0, id="case counts by default"),
        pytest.param({}, "re\u0301sume\u0301", "r\u00e9sum\u00e9", 1, id="composed and decomposed are one by default"),
        pytest.param({"unicode": "keep"}, "e\u0301", "\u00e9", 0, id="unless Unicode is kept"),
        pytest.param({"unicode": "nfc"}, "\ufb01sh", "fish", 0, id="nfc keeps a ligature"),
        pytest.param({"unicode": "nfkc"}, "\ufb01sh", "fish", 1, id="nfkc opens a ligature"),
        pytest.param({"whitespace": "keep"}, "Oslo ", "Oslo", 0, id="whitespace kept"),
        pytest.param({"whitespace": "strip"}, "New  York", "New York", 0, id="strip leaves inner whitespace"),
        pytest.param({"whitespace": "collapse"}, "New \n York", "New York", 1, id="collapse"),
        pytest.param({"whitespace": "remove"}, "New York", "NewYork", 1, id="remove"),
        pytest.param({"case": "lower"}, "OSLO", "oslo", 1, id="lower"),
        pytest.param({"case": "lower"}, "STRASSE", "straße", 0, id="lower keeps a sharp s"),
        pytest.param({"case": "fold"}, "STRASSE", "straße", 1, id="fold"),
        pytest.param({"punctuation": "strip"}, "**Oslo**. ", "Oslo", 1, id="outer punctuation"),
        pytest.param({"punctuation": "strip"}, "co-op.", "coop", 0, id="inner punctuation stays"),
        pytest.param({"punctuation": "remove"}, "co-op.", "coop", 1, id="all punctuation"),
        pytest.param({"remove": "-_"}, "co-o_p", "coop", 1, id="chosen characters"),
        pytest.param({"quotes": "double"}, "say 'hi'", 'say "hi"', 1, id="one kind of quotes"),
    ],
)
def test_normalisation_decides_what_counts_as_equal(normalise, text, target, value):
    assert points({"kind": "exact", "normalise": normalise}, text, target) == value


@pytest.mark.parametrize(
    ("part", "text", "value"),
    [
        ("all", "Oslo, I think", 0),
        ("first_word", "Oslo, I think", 1),
        ("last_word", "I say Oslo", 1),
        ("first_line", "\nOslo\nBergen", 1),
        ("last_line", "Bergen\nOslo\n\n", 1),
        ("last_line", "Oslo\nBergen", 0),
        ("first_word", "", 0),
    ],
)
def test_exact_compares_the_part_asked_for(part, text, value):
    spec = {"kind": "exact", "part": part, "normalise": {"punctuation": "strip"}}
    assert points(spec, text, "Oslo") == value


def test_any_target_of_a_list_is_right():
    assert points({"kind": "exact"}, "Fiber", ["Fibre", "Fiber"]) == 1
    assert points({"kind": "exact"}, "Fibers", ["Fibre", "Fiber"]) == 0


def test_a_wrong_answer_says_where_it_first_differs_from_the_nearest_target():
    reason = score({"kind": "exact"}, text="Lisbom", target=["Porto", "Lisbon"]).reason
    assert "character 6" in reason
    assert '"m" for "n"' in reason


def test_an_answer_that_stops_early_says_what_should_follow():
    assert '"bon" should follow' in score({"kind": "exact"}, text="Lis", target="Lisbon").reason


@pytest.mark.parametrize(
    ("options", "text", "target", "value"),
    [
        ({}, "The town is Oslo.", "Oslo", 1),
        ({}, "The town is oslo.", "Oslo", 0),
        ({"normalise": FOLD}, "The town is oslo.", "Oslo", 1),
        ({}, "I know", "no", 1),
        ({"words": True}, "I know", "no", 0),
        ({"words": True}, "I know: no.", "no", 1),
        ({"words": True}, "no", "no", 1),
        ({"words": True}, "no_no", "no", 0),
        ({"require": "any"}, "red", ["red", "blue"], 1),
        ({"require": "all"}, "red", ["red", "blue"], 0),
        ({"require": "all"}, "blue and red", ["red", "blue"], 1),
        ({"part": "last_line"}, "Oslo\nBergen", "Oslo", 0),
    ],
)
def test_contains(options, text, target, value):
    assert points({"kind": "contains", **options}, text, target) == value


def test_contains_all_names_what_is_lacking():
    reason = score({"kind": "contains", "require": "all"}, text="red", target=["red", "blue"]).reason
    assert '"blue"' in reason
    assert "1 of 2" in reason


def test_contains_refuses_a_target_that_every_answer_would_contain():
    result = score({"kind": "contains"}, text="anything", target="  ")
    assert result.value == 0
    assert "every response would contain it" in result.reason


@pytest.mark.parametrize(
    ("options", "text", "target", "value"),
    [
        ({"pattern": r"\d{4}"}, "in 1969", None, 1),
        ({"pattern": r"\d{4}"}, "in 69", None, 0),
        ({"pattern": r"\d{4}", "match": "full"}, "in 1969", None, 0),
        ({"pattern": r"\d{4}", "match": "full"}, "1969", None, 1),
        ({"pattern": "oslo"}, "OSLO", None, 0),
        ({"pattern": "oslo", "ignore_case": True}, "OSLO", None, 1),
        ({"pattern": r"answer: (\w+)", "group": 1}, "answer: Oslo!", "Oslo", 1),
        ({"pattern": r"answer: (\w+)", "group": 1}, "answer: Bergen", "Oslo", 0),
        ({"pattern": r"answer: (?P<town>\w+)", "group": "town"}, "answer: Oslo", ["Bergen", "Oslo"], 1),
        ({"pattern": r"(a)|(b)", "group": 2}, "a", "b", 0),
        ({"pattern": r"(\w+)", "group": 1, "normalise": FOLD}, "OSLO", "Oslo", 1),
    ],
)
def test_regex(options, text, target, value):
    assert points({"kind": "regex", **options}, text, target) == value


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"kind": "regex"}, "scorer.pattern"),
        ({"kind": "regex", "pattern": "("}, "scorer.pattern"),
        ({"kind": "regex", "pattern": r"(a)\1"}, "scorer.pattern"),
        ({"kind": "regex", "pattern": "a" * 1001}, "scorer.pattern"),
        ({"kind": "regex", "pattern": "((a{100}){100}){10}"}, "scorer.pattern"),
        ({"kind": "regex", "pattern": "a", "group": True}, "scorer.group"),
        ({"kind": "regex", "pattern": "(a)", "group": 2}, "scorer"),
        ({"kind": "regex", "pattern": "(a)", "group": "b"}, "scorer"),
    ],
)
def test_patterns_that_cannot_be_used_are_refused_by_name(spec, field):
    with pytest.raises(InvalidInput) as refused:
        check_spec(spec)
    assert field in refused.value.fields


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a|aa)+$b", "(.*)(.*)(.*)x"])
def test_patterns_that_ruin_backtracking_engines_run_in_linear_time(pattern):
    text = "a" * 200_000
    begin = time.process_time()
    assert points({"kind": "regex", "pattern": pattern}, text, None) == 0
    assert time.process_time() - begin < 2


def test_texts_too_long_for_a_pattern_do_not_match():
    result = score({"kind": "regex", "pattern": "a"}, text="a" * 200_001, target=None)
    assert result.value == 0
    assert "200001 characters" in result.reason


def test_texts_too_long_to_be_scored_say_so():
    assert "1000001 characters" in score({"kind": "exact"}, text="a" * 1_000_001, target="a").reason


def test_a_long_answer_is_quoted_from_where_it_is_wrong():
    target = '{"name": "convert", "arguments": {"from": "CHF", "to": "EUR", "amount": 120}}'
    came = score({"kind": "exact"}, text=target.replace('"CHF"', '"USD"'), target=target)
    assert came.reason.startswith('Expected "CHF\\", \\"to\\"')
    assert ', got "USD\\", \\"to\\"' in came.reason
    assert came.reason.endswith("first difference at character 44.")
    prose = score({"kind": "exact"}, text=f"Sure! Here is the call: {target}", target=target)
    assert prose.reason.startswith('Expected "{\\"name\\": \\"convert\\"')
    assert ', got "Sure! Here is the call' in prose.reason
