"""Border probes: a search keeps prompts that are split, and watches of them notice a change by first words alone."""

import tracemalloc
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bench.simulated_border import CASES, measure
from evalboard.core.errors import InvalidInput
from evalboard.core.probes import ProbeExchange, choose_sampling, complete_parameters, judge_border_probe, plan_calls
from evalboard.core.probes.border_probe import ALARMS_PER_ROUND, BORDER_WINDOWS, judge_watch, read_first_word

SEARCH: dict[str, Any] = {
    "prompts": ["a", "b", "c", "d"],
    "search": True,
    "n_prompts": 2,
    "random_seed": 0,
    "calls": 10,
}
WATCH = {**SEARCH, "search": False}


def answered(*words: Mapping[str, int], error: str = "") -> list[ProbeExchange]:
    """Calls by prompt: how often each word came."""
    return [
        ProbeExchange(prompt=prompt, group="ask", text=f" {word.title()}.", error=error, is_remote=True)
        for prompt, counts in enumerate(words)
        for word, n in counts.items()
        for _ in range(n)
    ]


def test_a_search_keeps_the_most_even_prompts() -> None:
    found = judge_border_probe(
        answered({"tea": 8}, {"tea": 5, "coffee": 3}, {"red": 4, "blue": 4}, {"red": 5, "blue": 3}),
        (),
        parameters=SEARCH,
    )
    assert (found.state, found.numbers["kept"]) == ("found", [2, 1])
    assert found.numbers["words"][1] == {"prompt": 1, "counts": {"coffee": 3, "tea": 5}}
    none = judge_border_probe(answered({"tea": 8}, {"tea": 7, "coffee": 1}), (), parameters=SEARCH)
    assert none.state == "none_found"
    lost = judge_border_probe(answered({"tea": 8}, error="call_failed"), (), parameters=SEARCH)
    assert lost.state == "incomplete"


def test_watches_need_a_few_before_them_and_begin_anew_after_a_change() -> None:
    even, moved = answered({"tea": 5, "coffee": 5}, {"red": 5, "blue": 5}), answered({"tea": 10}, {"red": 10})
    known: list[Any] = []
    states = []
    for calls in [even] * 6 + [moved] * 6:
        judged = judge_border_probe(calls, known, parameters=WATCH)
        states.append(judged.state)
        known = [judged.numbers] if judged.state == "changed" else [*known, judged.numbers]
    at = states.index("changed")
    assert states[:4] == ["too_few"] * 4
    assert states[4:6] == ["stable"] * 2
    assert 6 <= at <= 8
    assert "changed" not in states[at + 1 :]
    window = judge_border_probe(moved, [judge_border_probe(even, (), parameters=WATCH).numbers] * 12, parameters=WATCH)
    assert window.numbers["windows"][0]["most_moved"] == [0, 1]


def test_no_alarm_is_likelier_than_is_stated() -> None:
    """The chances of all windows of 1,000 rounds come to 1 %, and each is a permutation's: never too small."""
    judged = judge_border_probe(answered({"tea": 5}), [{"words": []}] * 6, parameters=WATCH)
    assert judged.numbers["level"] * len(BORDER_WINDOWS) * 100 == pytest.approx(1000 * ALARMS_PER_ROUND) == 0.01
    rng = np.random.default_rng(7)
    p_values = []
    for _ in range(150):
        watches = [answered({"a": int(n), "b": 10 - int(n)}) for n in rng.binomial(10, 0.5, 6)]
        known = [judge_border_probe(each, (), parameters=WATCH).numbers for each in watches[:-1]]
        p_values.append(judge_border_probe(watches[-1], known, parameters=WATCH).numbers["windows"][0]["p_value"])
    assert np.mean(np.array(p_values) <= 0.05) <= 0.11  # 0.05, and three standard deviations


def test_a_stated_shift_is_noticed() -> None:
    assert measure(CASES[1], 1) == 1.0


@pytest.mark.parametrize(("text", "word"), [(" Tea.", "tea"), ("**Tea** it is", "tea"), ("", ""), ("\n'7'\n", "7")])
def test_an_answer_counts_by_its_first_word(text: str, word: str) -> None:
    assert read_first_word(text) == word


def test_every_prompt_is_asked_once_a_round_at_a_temperature_of_one() -> None:
    parameters = complete_parameters("border", {"prompts": ["a", "b", "c"], "calls": 2})
    calls = plan_calls("border", parameters, ["a", "b", "c"])
    assert [sorted(call.prompt for call in calls if call.round == index) for index in (0, 1)] == [[0, 1, 2]] * 2
    assert choose_sampling("border", parameters, "ask") == {"temperature": 1.0, "max_tokens": 1}
    assert len(plan_calls("border", {**parameters, "search": True}, ["a", "b", "c"])) == 3 * 8
    with pytest.raises(InvalidInput):
        complete_parameters("border", {"calls": 0})


def test_many_words_take_no_more_memory_and_their_change_is_seen() -> None:
    """Without a limit of words, the deals of this one probe take 2 GB and minutes."""
    rng = np.random.default_rng(0)

    def counts(*words: int) -> dict[str, int]:
        return {str(word): words.count(word) for word in sorted(set(words))}

    known = [{0: counts(*rng.integers(0, 900, 10).tolist())} for _ in range(63)]
    tracemalloc.start()
    judged = judge_watch([*known, {0: counts(*rng.integers(0, 2, 10).tolist())}], parameters=WATCH)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert judged.state == "changed"
    assert peak < 50e6
