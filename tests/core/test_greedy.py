"""Which answers show by themselves that they were not decoded greedily."""

import pytest

from evalboard.contract.facts import FactSource, FactState, SettingsSeen
from evalboard.core.compare import find_not_greedy
from evalboard.core.profile import list_setting_facts
from evalboard.core.trace import TokenTrace, join_traces, make_trace

GREEDY = {"temperature": 0.0}


def answer(*steps: tuple[float, tuple[float, ...]]) -> TokenTrace:
    """An answer by the logprob of each chosen token, and those of the others that are listed."""
    listed = [[(1, chosen), *((n, other) for n, other in enumerate(others, 2))] for chosen, others in steps]
    return make_trace([1] * len(steps), [chosen for chosen, _ in steps], listed)


@pytest.mark.parametrize(
    ("below", "is_engine", "is_log"),
    [(0.0, False, False), (5e-7, False, False), (5e-5, True, False), (0.2, True, True), (13.0, True, False)],
)
def test_a_token_below_the_top_shows_it_but_for_ties_and_what_a_grammar_forbade(
    below: float, is_engine: bool, is_log: bool
) -> None:
    side = join_traces([answer((-0.5, (-1.0,)), (-0.5 - below, (-0.5, -4.0)))])
    assert [find_not_greedy(side, is_decimal=each)[1].tolist() for each in (False, True)] == [[is_engine], [is_log]]


def test_an_answer_in_which_something_was_forbidden_says_nothing_at_its_other_tokens() -> None:
    forced = answer((-20.0, (-0.1,)), (-2.0, (-0.5,)))
    free, bare = answer((-2.0, (-0.5,))), make_trace([1], [-2.0], [[]])
    assert find_not_greedy(join_traces([forced, free, bare]), is_decimal=True).tolist() == [
        [True, True, False],
        [False, True, False],
    ]


@pytest.mark.parametrize(("is_external", "is_logged"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize(
    ("n", "total", "is_contradicted"), [(2, 2, False), (3, 300, True), (3, 301, False), (40, 1000, True)]
)
def test_three_answers_and_one_in_a_hundred_contradict_a_temperature_of_0(
    n: int, total: int, is_contradicted: bool, is_external: bool, is_logged: bool
) -> None:
    seen = SettingsSeen(n_answers=total, n_left_out={}, checked={}, n_listed=total, n_not_greedy=n)
    fact, *_ = list_setting_facts(GREEDY, is_external=is_external, is_logged=is_logged, seen=seen)
    assert (fact.state == FactState.CONTRADICTED) == is_contradicted
    assert (fact.value is None, fact.source == FactSource.ANSWERS) == (is_contradicted, is_contradicted)
    assert (fact.wanted, fact.sent) == (0.0, 0.0)
