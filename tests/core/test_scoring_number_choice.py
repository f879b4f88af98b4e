"""The scorers number and choice."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.errors import InvalidInput
from evalboard.core.scoring import check_spec, score


def points(spec, text, target):
    return score(spec, text=text, target=target).value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42),
        ("It is 42.", 42),
        ("-3 degrees", -3),
        ("\u22123", -3),
        ("+7", 7),
        ("10-3", 10),
        ("1,234,567 people", 1234567),
        ("1,2,3", 1),
        ("1,2345", 1),
        ("$1,299.50", 1299.5),
        ("-$5", -5),
        ("3.50", 3.5),
        (".5", 0.5),
        ("1e3", 1000),
        ("2.5E-2", 0.025),
        ("6.02 × 10^23", 6.02e23),
        ("0.1", 0.1),
        ("25%", 25),
        ("42nd", 42),
        ("H2O, 7 of them", 7),
        ("v1.2.3 or 9", 9),
        ("2024.05.01 or 9", 9),
        ("007", 7),
    ],
)
def test_the_first_number_of_a_text(text, value):
    result = score({"kind": "number"}, text=text, target=value)
    assert result.value == 1, result.reason
    assert points({"kind": "number"}, text, 2 * value) == 0


@pytest.mark.parametrize("text", ["", "none", "H2O", "1.2.3", "e5", "--", "٣"])
def test_texts_without_a_number_say_so(text):
    assert "no number" in score({"kind": "number"}, text=text, target=1).reason


@pytest.mark.parametrize(
    ("options", "text", "target", "value"),
    [
        ({"which": "last"}, "3 + 4 = 7", 7, 1),
        ({"which": "first"}, "3 + 4 = 7", 7, 0),
        ({"which": "only"}, "7", 7, 1),
        ({"which": "only"}, "7 or 8", 7, 0),
        ({"absolute": 0.5}, "7.5", 7, 1),
        ({"absolute": 0.5}, "7.51", 7, 0),
        ({"relative": 0.1}, "110", 100, 1),
        ({"relative": 0.1}, "110.1", 100, 0),
        ({"relative": 0.1}, "-109", -100, 1),
        ({"absolute": 1, "relative": 0.1}, "105", 100, 1),
        ({"decimal": ",", "thousands": "."}, "1.234,5", 1234.5, 1),
        ({"thousands": " "}, "1\u202f234", 1234, 1),
        ({"thousands": "none"}, "1,234", 1, 1),
        ({}, "8", [7, 8], 1),
        ({}, "9", [7, 8], 0),
    ],
)
def test_number_options(options, text, target, value):
    assert points({"kind": "number", **options}, text, target) == value


def test_numbers_are_compared_as_decimals_without_rounding():
    assert points({"kind": "number"}, "0.3", 0.3) == 1
    assert points({"kind": "number", "absolute": 0.1}, "0.3", 0.2) == 1
    assert points({"kind": "number"}, "100000000000000000000000000000001", 10**32) == 0


def test_a_wrong_number_says_how_far_off_it_is():
    reason = score({"kind": "number", "absolute": 1}, text="It is 45.", target=42).reason
    assert "45" in reason
    assert "off by 3" in reason
    assert "1 allowed" in reason


@pytest.mark.parametrize("text", ["9" * 5000, "1e99999999999", "1e2000"])
def test_endless_numbers_score_nothing(text):
    assert "too long or too large" in score({"kind": "number"}, text=text, target=1).reason


@given(st.integers(-(10**15), 10**15))
def test_every_integer_is_read_back_with_and_without_separators(number):
    assert points({"kind": "number"}, f"so {number:,}.", number) == 1
    assert points({"kind": "number", "which": "only"}, f"{number}", number) == 1


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300))
def test_every_float_is_read_back_from_its_written_form(number):
    result = score({"kind": "number"}, text=repr(number), target=number)
    assert result.value == 1, result.reason


@pytest.mark.parametrize("text", ["1" * 300_000, "1," * 150_000, "1,111" * 60_000, "1.1" * 100_000, "answer" * 50_000])
@pytest.mark.parametrize("spec", [{"kind": "number", "which": "last"}, {"kind": "choice"}])
def test_long_texts_are_read_in_linear_time(spec, text):
    begin = time.process_time()
    score(spec, text=text, target="A" if spec["kind"] == "choice" else 1)
    assert time.process_time() - begin < 2


def test_one_character_cannot_be_decimal_point_and_separator():
    with pytest.raises(InvalidInput):
        check_spec({"kind": "number", "decimal": ","})


@pytest.mark.parametrize(
    "text",
    [
        "B", "(B)", "B)", "B.", "B: plum", " b)".upper(), "**B**", "[B]", "(B) plum", "B\nbecause",
        "The answer is B", "The answer is (B).", "Answer: B", "answer:\nB", "The correct answer is **B**.",
        "I think the answer would be B, not A", "A careful look shows that the answer is B", "B plum",
        "Answer: option B",
    ],
)  # fmt: skip
def test_ways_to_choose_a_letter(text):
    result = score({"kind": "choice"}, text=text, target="B")
    assert result.value == 1, result.reason


@pytest.mark.parametrize("text", ["", "plum", "Because", "E", "b", "The answer is Because", "Answers vary", "BC"])
def test_texts_that_choose_no_letter(text):
    result = score({"kind": "choice"}, text=text, target="B")
    assert result.value == 0
    assert "No letter" in result.reason


@pytest.mark.parametrize(
    ("options", "text", "target", "value"),
    [
        ({"ignore_case": True}, "b)", "B", 1),
        ({"bare": False}, "A zygote", "A", 0),
        ({"letters": "AB"}, "C", "A", 0),
        ({"letters": "ABCDE"}, "E", "E", 1),
        ({"which": "last"}, "Is the answer A? No, the answer is C. So the answer is B.", "B", 1),
        ({"which": "first"}, "Is the answer A? No, the answer is C. So the answer is B.", "C", 1),
        ({}, "B", ["A", "B"], 1),
        ({}, "A", "B", 0),
    ],
)
def test_choice_options(options, text, target, value):
    assert points({"kind": "choice", **options}, text, target) == value


@pytest.mark.parametrize("letters", ["", "A", "AA", "ab", "A1", "ÄB", 3])
def test_letters_must_be_different_capitals(letters):
    with pytest.raises(InvalidInput) as refused:
        check_spec({"kind": "choice", "letters": letters})
    assert list(refused.value.fields) == ["scorer.letters"]
