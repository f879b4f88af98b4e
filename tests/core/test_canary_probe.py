"""An endpoint answers as it did, or not any more; noise between runs, a day's load and lost calls are no change."""

import json
import math
import random
from dataclasses import replace

import numpy as np
import pytest

from bench.simulated_probes import canary_runs
from evalboard.core.probes import canary_probe
from evalboard.core.probes.call import ProbeExchange, ProbeResult
from evalboard.wording.probe import describe_finding


def sentence(finding: ProbeResult) -> str:
    return describe_finding("canary", finding.state, finding.numbers)


Runs = list[list[ProbeExchange]]


def runs_of(*logprobs: float, n_prompts: int = 4) -> Runs:
    """One run for each number, which every prompt's first token has; the second one's stays."""
    return [
        [ProbeExchange(prompt=prompt, group="ask", top=((1, logprob), (2, -3.0))) for prompt in range(n_prompts)]
        for logprob in logprobs
    ]


def find(runs: Runs, **how: int) -> ProbeResult:
    return canary_probe.judge_canary_probe(runs[-1], runs[:-1], **how)


@pytest.mark.parametrize(("n_runs", "n_more"), [(1, 11), (2, 10), (11, 1)])
def test_with_too_few_runs_it_says_how_many_more(n_runs: int, n_more: int) -> None:
    finding = find(runs_of(*[-0.5] * n_runs))
    assert (finding.state, finding.numbers["n_more_runs"]) == ("too_few", n_more)
    assert f"{n_more} to go." in sentence(finding)
    assert ("All" in sentence(finding)) == (n_runs > 1)


def test_with_too_few_runs_it_tells_what_has_moved_so_far() -> None:
    finding = find(runs_of(-0.5, -0.5, -0.75))
    assert (finding.numbers["n_prompts_differing"], finding.numbers["largest_span"]) == (4, 0.25)
    assert sentence(finding).endswith("to go. 4 of 4 prompts differ, by up to 0.25 nats.")


@pytest.mark.parametrize("at", range(1, 5), ids=lambda at: f"{at}-runs-ago")
def test_where_all_runs_gave_the_same_bits_any_difference_is_a_change(at: int) -> None:
    logprobs = [-0.5] * 12
    assert find(runs_of(*logprobs)).state == "stable"
    logprobs[-at] = math.nextafter(-0.5, 0.0)
    finding = find(runs_of(*logprobs))
    assert finding.state == "changed"
    assert finding.numbers["p_value"] is finding.numbers["effect_ratio"] is None
    assert sentence(finding).startswith("The answers have changed: 4 of 4 prompts differ. The 8 runs before")


def test_a_token_new_among_the_alternatives_is_a_difference() -> None:
    runs = runs_of(*[-0.5] * 12)
    runs[-1][2] = replace(runs[-1][2], top=((1, -0.5), (9, -2.5)))
    assert find(runs).numbers["n_prompts_outside"] == 1


def test_the_numbers_are_those_of_the_formulas() -> None:
    """Values of token 1: eight at ±0.01 around −1, then four around −0.9; token 2 stays."""
    old, new = [-1.01, -0.99] * 4, [-0.91, -0.89] * 2
    finding = find(runs_of(*old, *new))
    v = np.var(old, ddof=1) / 2  # a mean over two tokens, of which one never moves
    effect = math.sqrt(((0.1**2) / 2 - v * (1 / 4 + 1 / 8)) / v)
    assert finding.state == "changed"
    assert finding.numbers["statistic"] == pytest.approx(0.05)
    assert finding.numbers["noise"] == pytest.approx(math.sqrt(v))
    assert finding.numbers["effect_ratio"] == pytest.approx(effect)
    assert (finding.numbers["p_value"], finding.numbers["n_splits"]) == (pytest.approx(1 / 495), 495)
    assert finding.numbers["n_outliers"] == 16
    assert sentence(finding).endswith(" The baseline has 8 of 28 runs so far.")


def test_a_token_missing_from_the_alternatives_counts_with_the_smallest_that_is_there() -> None:
    runs = runs_of(*[-0.5] * 12)
    runs[0][0] = replace(runs[0][0], top=((1, -0.5),))  # token 2 is missing: −0.5 stands in
    finding = find(runs)
    v = np.var([-0.5, *[-3.0] * 7], ddof=1) / 8  # of 4 prompts' two tokens each
    assert finding.numbers["noise"] == pytest.approx(math.sqrt(v))


def test_only_the_newest_runs_count() -> None:
    runs = [*runs_of(*[-9.0] * 5), *runs_of(*[-0.5] * 32)]
    finding = find(runs)
    assert (finding.state, finding.numbers["n_baseline"]) == ("stable", 28)
    assert "so far" not in sentence(finding)


def test_a_change_in_the_newest_run_alone_is_said_to_be_there() -> None:
    finding = find(canary_runs(np.random.default_rng(1), shift=0.5, n_new=1))
    assert finding.state == "partly_changed"
    assert sum(finding.numbers["outliers_by_run"][:3]) == 0
    assert sentence(finding).startswith("The newest run differs: 20 of 80 answers")


def test_calls_without_an_answer_are_counted_and_hide_no_change() -> None:
    rng = np.random.default_rng(4)
    for shift, state in ((0.0, "stable"), (0.2, "changed")):
        runs = [
            [replace(call, top=(), error="timeout") if rng.random() < 0.1 else call for call in run]
            for run in canary_runs(rng, shift=shift)
        ]
        finding = find(runs)
        assert finding.state == state
        assert finding.numbers["n_failed"] > 0
        assert "left out" in sentence(finding)


def test_a_prompt_that_never_came_back_in_the_window_decides_nothing() -> None:
    runs = runs_of(*[-0.5] * 12)
    for run in runs[8:]:
        run[0] = replace(run[0], top=(), error="timeout")
    finding = find(runs)
    assert finding.state == "stable"
    assert finding.numbers["prompts"][0] == {"prompt": 0, "moved": None}


def test_runs_that_mostly_failed_are_left_out() -> None:
    runs = canary_runs(np.random.default_rng(6), n_runs=13)
    runs[5] = [replace(call, top=(), error="gone") for call in runs[5]]
    finding = find(runs)
    assert (finding.state, finding.numbers["n_runs"], finding.numbers["n_runs_left_out"]) == ("stable", 12, 1)
    assert canary_probe.judge_canary_probe(runs[5], runs[:5]).state == "incomplete"
    assert canary_probe.judge_canary_probe([], runs).state == "incomplete"
    assert (
        canary_probe.judge_canary_probe([ProbeExchange(prompt=0, group="ask", token_ids=(1,))], runs).state
        == "incomplete"
    )


def test_logprobs_that_are_not_finite_cross_no_border() -> None:
    runs = runs_of(*[-0.5] * 12)
    runs[3][1] = replace(runs[3][1], top=((1, -0.5), (2, -math.inf)))
    json.dumps(find(runs).numbers, allow_nan=False)


@pytest.mark.parametrize("n_runs", [5, 12, 32])
def test_the_order_of_the_calls_changes_nothing_and_every_number_is_json(n_runs: int) -> None:
    runs = canary_runs(np.random.default_rng(8), n_runs=n_runs, shift=0.03)
    first = find(runs, random_seed=4)
    for run in runs:
        random.Random(2).shuffle(run)
    assert find(runs, random_seed=4) == first
    assert json.loads(json.dumps(first.numbers, allow_nan=False)) == first.numbers
