"""The closed list of the words that end an answer."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from evalboard.contract import response
from evalboard.core.trace import ENDINGS, NOTABLE, Ending, find_ending, judge_words, read_ending


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        (["stop", "EOS", "end_turn", "STOP_SEQUENCE", "tool-calls", "toolUse"], Ending.COMPLETE),
        (["length", "MAX_TOKENS", "model_length"], Ending.CUT),
        (["content-filter", "SAFETY", "recitation"], Ending.FILTERED),
        (["refusal", "Refused"], Ending.REFUSED),
        (["error", "ERROR", "network_error", "networkError", "abort", "insufficient-system-resource"], Ending.FAILED),
        (["", "unknown", "other", "quota"], None),
    ],
)
def test_words_are_compared_without_case_and_dashes(words: list[str], ending: Ending | None) -> None:
    assert [read_ending(word) for word in words] == [ending] * len(words)


def test_the_page_names_words_that_break_off_an_answer() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "imports.md").read_text()
    named = re.search(r"Its finish reason then says so: (.+?) and the like", page, re.DOTALL)
    words = re.findall(r"`(\w+)`", named[1] if named else "")
    assert {"error", "timeout"} <= set(words)
    assert {word: read_ending(word) for word in words} == dict.fromkeys(words, Ending.FAILED)


@pytest.mark.parametrize(
    ("word", "text", "is_refusal", "ending"),
    [
        ("stop", "Green.", False, Ending.COMPLETE),
        ("length", "Gre", False, Ending.CUT),
        ("MAX-TOKENS", "", False, Ending.CUT),  # the budget went into thinking
        ("content_filter", "", False, Ending.FILTERED),
        ("safety", "I would rather not.", True, Ending.FILTERED),  # the provider spoke last
        ("stop", "I would rather not.", True, Ending.REFUSED),
        ("refusal", "", False, Ending.REFUSED),
        ("stop", " \n", False, Ending.EMPTY),
        ("", "", False, Ending.EMPTY),
        ("", "Green.", False, None),
        ("wrapped_up", "Green.", False, Ending.UNKNOWN),
        ("wrapped_up", "", False, Ending.EMPTY),
    ],
)
def test_an_answer_that_is_there_has_one_ending(word: str, text: str, is_refusal: bool, ending: Ending | None) -> None:
    assert find_ending(word, text=text, is_refusal=is_refusal) is ending


def test_the_contract_names_the_endings_of_answers() -> None:
    assert set(response.ENDINGS) == set(Ending) - {Ending.FAILED}
    assert set(NOTABLE) == set(Ending) - {Ending.FAILED, Ending.COMPLETE}


def test_each_word_has_one_ending() -> None:
    assert set(ENDINGS) == set(Ending) - {Ending.EMPTY, Ending.UNKNOWN}  # which no word says
    assert all(read_ending(word) is ending for ending, words in ENDINGS.items() for word in words)
    assert not any(set(one) & set(other) for one, other in combinations(ENDINGS.values(), 2))


@pytest.mark.parametrize(
    ("counted", "meant", "meanings"),
    [
        ({"wrapped_up": 9, "length": 1, "": 50}, {}, {"wrapped_up": Ending.COMPLETE}),
        ({"wrapped_up": 89, "stop": 11}, {}, {"wrapped_up": Ending.UNKNOWN}),
        ({"wrapped_up": 1, "stop": 99}, {"Wrapped-Up": "complete"}, {"wrapped_up": Ending.COMPLETE}),
        ({"wrapped_up": 99, "stop": 1}, {"wrapped_up": "cut"}, {"wrapped_up": Ending.CUT}),
        ({"stop": 5, "": 5}, {"stop": "cut"}, {}),
    ],
)
def test_a_word_of_no_list_means_what_nine_of_ten_answers_or_a_person_say(
    counted: dict[str, int], meant: dict[str, str], meanings: dict[str, Ending]
) -> None:
    assert judge_words(counted, meant) == meanings
