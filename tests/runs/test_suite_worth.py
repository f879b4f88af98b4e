"""What cases are worth: those that every repeat passes or none does, and those that ask the same."""

import pytest

from runs.suites import CasesWorth, SomeCases, cases_worth, push_suite, suite_report
from tests import build

pytestmark = pytest.mark.django_db


def worth() -> CasesWorth:
    return cases_worth(suite_report("colours"))


@pytest.mark.nightly
def test_a_case_is_always_right_or_never_where_every_repeat_of_every_run_says_so() -> None:
    version = build.suite(case_ids=["sure", "lost", "late", "torn"])
    assert (worth().n_repeats, worth().always_right, worth().never_right) == (0, None, None)
    build.finished_run(["blue", "red", "blue", "red"], ["blue", "red", "blue", "blue"], version=version)
    assert worth().always_right == SomeCases(2, ("sure", "late"))
    assert worth().never_right == SomeCases(1, ("lost",))
    build.finished_run(["blue", "red", "red", None], version=version, by=build.process(build.bucket("bfloat16")))
    assert worth().n_repeats == 3
    assert worth().always_right == SomeCases(1, ("sure",))
    assert worth().never_right == SomeCases(1, ("lost",))


def test_cases_ask_the_same_but_for_spaces_and_capitals_and_are_at_odds_by_their_targets() -> None:
    asked = [
        ("one", "Which colour has\nthe sky?", "blue"),
        ("two", "which  colour has the Sky?", "blue"),
        ("three", "Which colour has the sea?", "blue"),
        ("four", "Which colour has the sea?", "green"),
        ("five", "Which colour has the sun?", "yellow"),
    ]
    cases = [
        {"id": case, "prompt": prompt, "target": target, "tags": ["all", case[:1]]} for case, prompt, target in asked
    ]
    push_suite(document={"slug": "colours", "max_tokens": 8, "scorer": {"kind": "exact"}, "cases": cases})
    known = worth()
    assert known.alike == SomeCases(4, ("one", "two", "three", "four"))
    assert known.at_odds == SomeCases(2, ("three", "four"))
    assert known.tags == (("all", 5), ("f", 2), ("t", 2), ("o", 1))
