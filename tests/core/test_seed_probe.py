"""A seed is honoured, partly honoured, ignored, not tested, or the calls do not tell; each by hand and by rate."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from bench.simulated_probes import QUIET, seed_calls
from evalboard.core.probes import seed_probe
from evalboard.core.probes.call import ProbeExchange, ProbeResult
from evalboard.wording.probe import describe_finding


def sentence(finding: ProbeResult) -> str:
    return describe_finding("seed", finding.state, finding.numbers)


def calls_of(same: list[list[str]], different: list[list[str]]) -> list[ProbeExchange]:
    """Texts by prompt, without token ids."""
    return [
        ProbeExchange(prompt=prompt, group=group, seed=1, text=text, bucket=3)
        for group, by_prompt in (("same", same), ("different", different))
        for prompt, texts in enumerate(by_prompt)
        for text in texts
    ]


def test_the_numbers_are_those_of_the_formulas() -> None:
    """One prompt, three and two calls, by characters: pairs share 10 10 10 (all alike) against 3."""
    finding = seed_probe.judge_seed_probe(calls_of([["abcdefghij"] * 3], [["abcde", "abcxyzuvwq"]]))
    numbers = finding.numbers
    assert numbers["compared"] == "character"
    assert numbers["effect"] == pytest.approx((10 - 3) / 10)
    assert numbers["hazard_same"] == pytest.approx(0.5 / 30)
    assert numbers["hazard_different"] == pytest.approx(1.5 / 4)
    assert numbers["rho"] == pytest.approx((0.5 / 30) / (1.5 / 4))
    spread = np.exp(1.645 * np.sqrt(1 / 0.5 + 1 / 1.5))
    assert (numbers["rho_low"], numbers["rho_high"]) == pytest.approx(
        (numbers["rho"] / spread, numbers["rho"] * spread)
    )
    assert numbers["prompts"][0]["pairs_same"] == [10, 10, 10]
    assert numbers["prompts"][0]["pairs_different"] == [3]
    # Of ten ways to deal two labels only one puts the odd pair together: one in ten by chance, no more.
    assert numbers["p_value"] == pytest.approx(0.1, abs=0.03)
    assert finding.state == "too_noisy"
    assert numbers["n_more_calls"] == 95


def test_an_exact_seed_and_one_under_noise_are_told_apart() -> None:
    exact = seed_probe.judge_seed_probe(seed_calls(np.random.default_rng(1)))
    noisy = seed_probe.judge_seed_probe(seed_calls(np.random.default_rng(1), noise=0.01))
    assert exact.numbers["is_exact"]
    assert sentence(exact).startswith("The seed is honoured exactly: all 25 calls with the same seed")
    assert noisy.state == "honoured"
    assert not noisy.numbers["is_exact"]
    assert f"{noisy.numbers['n_parted']} of 25 calls with the same seed differ" in sentence(noisy)


def test_the_bucket_that_drops_the_seed_is_named() -> None:
    rng = np.random.default_rng(3)
    kept = [replace(call, bucket=1) for call in seed_calls(rng, noise=QUIET)]
    dropping = iter(seed_calls(rng, dropped=1.0))
    mixed = [replace(next(dropping), bucket=2) if index % 5 in (0, 2) else call for index, call in enumerate(kept)]
    finding = seed_probe.judge_seed_probe(mixed)
    assert finding.state == "partly_honoured"
    assert "calls of one bucket (p < 0.001): that bucket drops the seed." in sentence(finding)
    assert (finding.numbers["dropping_bucket"], finding.numbers["p_bucket"] < 0.001) == (2, True)
    first, second = finding.numbers["loyal_by_bucket"]
    assert (first["bucket"], first["n_loyal"]) == (1, first["n_same"])
    assert (second["bucket"], second["n_loyal"] < second["n_same"] / 3) == (2, True)


def test_texts_that_no_seed_changes_are_no_test_of_the_seed() -> None:
    finding = seed_probe.judge_seed_probe(calls_of([["a sea of tea"] * 5] * 5, [["a sea of tea"] * 5] * 5))
    assert finding.state == "deterministic"
    assert "50 of 50 pairs are identical" in sentence(finding)


def as_greedy(calls: list[ProbeExchange], text: str) -> list[ProbeExchange]:
    return [*calls, *(ProbeExchange(prompt=prompt, group="greedy", text=text) for prompt in range(5))]


def test_a_temperature_of_0_tells_a_dropped_temperature_from_a_seed_that_is_put_in_place_of_all() -> None:
    always = calls_of([["a sea of tea"] * 5] * 5, [["a sea of tea"] * 5] * 5)
    dropped, replaced = (
        seed_probe.judge_seed_probe(as_greedy(always, "a sea of tea")),
        seed_probe.judge_seed_probe(as_greedy(always, "a bee")),
    )
    assert (dropped.state, replaced.state, replaced.numbers["n_as_greedy"]) == ("greedy", "deterministic", 0)
    assert "the text of temperature 0: the temperature is dropped" in sentence(dropped)
    assert "The temperature arrives, so a cache answers or one seed replaces all" in sentence(replaced)
    assert dropped.numbers["n_calls"] == 50


def test_noise_that_parts_loyal_calls_explains_some_that_part_early() -> None:
    """Four of 25 part at the first token. Where the others never do, that is a dropped seed; where all part, noise."""
    rng = np.random.default_rng(4)
    for noise, state in ((0.0, "partly_honoured"), (0.05, "honoured")):
        calls = seed_calls(rng, noise=noise)
        lost = [index for index, call in enumerate(calls) if call.group == "same"][::8]
        for index in lost:
            calls[index] = replace(calls[index], token_ids=(9999, *calls[index].token_ids[1:]))
        finding = seed_probe.judge_seed_probe(calls)
        assert (finding.state, finding.numbers["p_early"] < 0.01) == (state, state == "partly_honoured"), noise


def test_failed_calls_are_counted_and_left_out() -> None:
    calls = seed_calls(np.random.default_rng(5))
    failed = [replace(call, token_ids=(), error="the engine is gone") for call in calls]
    found = seed_probe.judge_seed_probe([*failed[:7], *calls[7:]])
    assert (found.state, found.numbers["n_failed"]) == ("honoured", 7)
    assert sentence(found).endswith(" 7 calls failed and are left out.")
    found = seed_probe.judge_seed_probe([*failed[:30], *calls[30:]])
    assert found.state == "incomplete"
    assert sentence(found).endswith("Most often: the engine is gone")
    assert seed_probe.judge_seed_probe([]).state == "incomplete"
    assert seed_probe.judge_seed_probe([ProbeExchange(prompt=0, group="same", text="a")] * 9).state == "incomplete"


def test_empty_answers_are_answers() -> None:
    finding = seed_probe.judge_seed_probe(
        [ProbeExchange(prompt=0, group=group) for group in ("same", "different") for _ in range(5)]
    )
    assert finding.state == "deterministic"


def test_the_order_of_the_calls_changes_nothing_and_every_number_is_json() -> None:
    calls = seed_calls(np.random.default_rng(8), noise=0.05, dropped=0.3)
    first = seed_probe.judge_seed_probe(calls, random_seed=4)
    random.Random(2).shuffle(calls)
    assert seed_probe.judge_seed_probe(calls, random_seed=4) == first
    assert json.loads(json.dumps(first.numbers, allow_nan=False)) == first.numbers
