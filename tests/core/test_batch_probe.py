"""What else is decoded moves no answer, hardly any, or many; and two such probes are alike or not."""

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean

import numpy as np
import pytest

from bench.simulated_probes import batch_calls
from evalboard.core.probes import batch_comparison, batch_probe
from evalboard.core.probes.call import ProbeExchange, ProbeResult
from evalboard.wording.probe import describe_batch_comparison, describe_finding


def sentence(finding: ProbeResult) -> str:
    return describe_finding("batch", finding.state, finding.numbers)


def copies(*texts: str, prompt: int = 0, batch_max: int | None = 5) -> list[ProbeExchange]:
    """Each character a token."""
    return [
        ProbeExchange(
            prompt=prompt, group="copy", round=index // 5, token_ids=tuple(map(ord, text)), batch_max=batch_max
        )
        for index, text in enumerate(texts)
    ]


def test_copies_that_are_all_alike_come_with_what_so_many_rule_out() -> None:
    finding = batch_probe.judge_batch_probe(
        [*copies(*["abc"] * 50), ProbeExchange(prompt=1, group="load", text="whatever")]
    )
    assert finding.state == "invariant"
    assert finding.numbers["n_rounds"] == 10  # five copies of one round share their steps: one witness
    assert finding.numbers["certificate"] == pytest.approx(1 - 0.05 ** (1 / 10))
    assert sentence(finding) == (
        "All 50 copies of 1 prompt gave the same text. With 95 % confidence, copies that are sent together differ in "
        "at most 26 % of rounds (10 rounds tried)."
    )


def test_copies_that_were_decoded_alone_say_nothing_of_batches() -> None:
    alone = batch_probe.judge_batch_probe(copies(*["abc"] * 20, batch_max=1))
    assert "Each was decoded at batch size 1" in sentence(alone)
    assert alone.numbers["batch_max"] == {"min": 1, "median": 1, "max": 1, "n_alone": 20}
    assert batch_probe.judge_batch_probe(copies(*["abc"] * 20, batch_max=None)).numbers["batch_max"] is None


@pytest.mark.parametrize(("n_other", "state"), [(1, "nearly"), (5, "nearly"), (6, "variant"), (60, "variant")])
def test_nearly_means_that_nineteen_of_twenty_copies_agree(n_other: int, state: str) -> None:
    finding = batch_probe.judge_batch_probe(copies(*["abc"] * (100 - n_other), *["abd"] * n_other))
    assert finding.state == state
    assert finding.numbers["n_modal"] == max(100 - n_other, n_other)
    assert finding.numbers["certificate"] is None


def test_the_numbers_are_those_of_the_formulas() -> None:
    texts = ["abc"] * 6 + ["abd"] * 3 + ["x"]
    numbers = batch_probe.judge_batch_probe(copies(*texts)).numbers
    alike = fmean(one == other for one, other in combinations(texts, 2))
    assert numbers["agreement"] == pytest.approx(alike)
    assert numbers["modal_share"] == 0.6
    assert numbers["entropy_bits"] == pytest.approx(-sum(p * math.log2(p) for p in (0.6, 0.3, 0.1)))
    by_pairs = fmean(len({one, other}) for one, other in combinations(texts, 2))
    by_fives = fmean(len({texts[index] for index in chosen}) for chosen in combinations(range(10), 5))
    assert numbers["rarefied"] == [
        {"m": 2, "n_unique": pytest.approx(by_pairs)},
        {"m": 5, "n_unique": pytest.approx(by_fives)},
        {"m": 10, "n_unique": 3},
    ]
    assert numbers["first_divergences"] == [
        {"prompt": 0, "position": 2, "token_modal": ord("c"), "token_other": ord("d"), "n": 3},
        {"prompt": 0, "position": 0, "token_modal": ord("a"), "token_other": ord("x"), "n": 1},
    ]


def test_a_copy_that_ends_early_leaves_the_text_where_it_has_no_token() -> None:
    [place] = batch_probe.judge_batch_probe(copies("abc", "abc", "ab")).numbers["first_divergences"]
    assert (place["position"], place["token_modal"], place["token_other"]) == (2, ord("c"), None)


def test_prompts_are_pooled_and_told_apart_and_never_held_against_each_other() -> None:
    finding = batch_probe.judge_batch_probe([*copies(*["abc"] * 9, "abd"), *copies(*["xyz"] * 10, prompt=1)])
    assert (finding.numbers["n_unique"], finding.numbers["n_modal"]) == (3, 19)
    assert [each["n_unique"] for each in finding.numbers["prompts"]] == [2, 1]
    assert finding.state == "nearly"
    assert batch_probe.judge_batch_probe([*copies(*["a"] * 9), *copies(*["b"] * 9, prompt=1)]).state == "invariant"


def test_failed_copies_are_counted_and_left_out() -> None:
    calls = [*copies(*["abc"] * 8), *(replace(call, token_ids=(), error="timeout") for call in copies(*["abc"] * 2))]
    finding = batch_probe.judge_batch_probe(calls)
    assert (finding.state, finding.numbers["n_copies"], finding.numbers["n_failed"]) == ("invariant", 8, 2)
    assert (
        batch_probe.judge_batch_probe([replace(call, error="gone") for call in copies(*["abc"] * 5)]).state
        == "incomplete"
    )
    assert batch_probe.judge_batch_probe([*copies("abc"), *copies("abc", prompt=1)]).state == "incomplete"
    assert batch_probe.judge_batch_probe([]).state == "incomplete"


def test_the_order_of_the_calls_changes_nothing_and_every_number_is_json() -> None:
    one, other = (batch_calls(np.random.default_rng(seed), share=0.2) for seed in (1, 2))
    found, held = batch_probe.judge_batch_probe(one), batch_comparison.compare_batch_probes(one, other, random_seed=3)
    random.Random(2).shuffle(one)
    assert batch_probe.judge_batch_probe(one) == found
    assert batch_comparison.compare_batch_probes(one, other, random_seed=3) == held
    for finding in (found, held):
        assert json.loads(json.dumps(finding.numbers, allow_nan=False)) == finding.numbers


@pytest.mark.parametrize("by_round", [0.0, 0.3])
def test_two_probes_under_one_condition_differ_no_more_often_than_stated(by_round: float) -> None:
    """Also where whole rounds go another way: dealing single copies would alarm often."""
    rng = np.random.default_rng(11)
    how = {"share": 0.05, "by_round": by_round, "n_prompts": 2}
    states = [
        batch_comparison.compare_batch_probes(batch_calls(rng, **how), batch_calls(rng, **how), random_seed=index).state
        for index in range(40)
    ]
    assert 40 - states.count("alike") <= 2  # more than that comes once in 140 if the rate is 1 %


def test_equal_noise_around_another_text_is_another_text() -> None:
    one, other = (batch_calls(np.random.default_rng(seed), share=0.1, moved=moved) for seed, moved in ((1, 0), (2, 2)))
    finding = batch_comparison.compare_batch_probes(one, other)
    assert finding.state == "other_texts"
    assert describe_batch_comparison(finding.state, finding.numbers).startswith(
        "The texts differ (p = 0.001): 2 of 5 prompts have another most common text"
    )


@pytest.mark.parametrize(
    ("second", "state"),
    [
        pytest.param(["abc"] * 60, "alike", id="same"),
        pytest.param([*["abc"] * 59, "abd"], "alike", id="one-copy-is-an-anecdote"),
        pytest.param(["abc", "abd", "abc", "abe", "abc"] * 12, "other_noise", id="noise"),
        pytest.param(["abd"] * 60, "other_texts", id="other-text"),
    ],
)
def test_against_copies_that_never_differ_the_rounds_that_do_are_counted(second: Sequence[str], state: str) -> None:
    for sides in ((["abc"] * 60, second), (second, ["abc"] * 60)):
        finding = batch_comparison.compare_batch_probes(*(copies(*side) for side in sides))
        assert (finding.state, finding.numbers["test"]) == (state, "fisher")


def test_the_exact_test_is_fishers() -> None:
    """12 rounds a side, of which 4 of the second leave the text: 2 · C(12,4)/C(24,4)."""
    second = ["abc", "abc", "abc", "abc", "abd"] * 4 + ["abc"] * 40
    finding = batch_comparison.compare_batch_probes(copies(*["abc"] * 60), copies(*second))
    assert finding.numbers["p_value"] == pytest.approx(2 * math.comb(12, 4) / math.comb(24, 4))


def test_probes_that_share_no_prompt_or_came_back_empty_are_not_compared() -> None:
    assert batch_comparison.compare_batch_probes(copies("a", "a"), copies("a", "a", prompt=1)).state == "incomplete"
    assert batch_comparison.compare_batch_probes(copies("a", "a"), []).state == "incomplete"


def test_tokens_are_never_held_against_characters() -> None:
    by_text = [ProbeExchange(prompt=0, group="copy", round=index, text="abc") for index in range(10)]
    with_ids = [replace(call, token_ids=(5, 6)) for call in by_text]
    finding = batch_comparison.compare_batch_probes(with_ids, by_text)
    assert (finding.state, finding.numbers["compared"]) == ("alike", "character")
