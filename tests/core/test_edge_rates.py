"""What docs/verdict.md promises at the edges: a few pairs in the gate, more at night."""

from pathlib import Path

import pytest

from bench import measured_table
from bench.bench_edges import FAULTY_PAIRS
from bench.simulated import SEED
from bench.simulated_edges import CLAIMS, FAULTS, CoinClaim, count_verdicts
from tests.core.rates import assert_kept_in_few, count_errors, count_errors_allowed, group_by_promise, promised_errors

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verdict.md"
PAIRS, PAIRS_FEW = 200, 8


@pytest.mark.parametrize("claims", group_by_promise(CLAIMS), ids=lambda claims: f"{claims[0].says}, {claims[0].aim}")
def test_a_promise_is_kept_in_a_few_pairs_of_each_server(claims: tuple[CoinClaim, ...]) -> None:
    assert_kept_in_few(claims, PAIRS_FEW)


@pytest.mark.nightly
@pytest.mark.drawn
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.situation}: {claim.says}")
def test_a_promise_is_kept(claim: CoinClaim) -> None:
    promised = promised_errors(claim)
    n_errors = count_errors(claim, claim.measure(PAIRS, seed=SEED), PAIRS)
    assert n_errors <= count_errors_allowed(PAIRS, promised, times_as_often=2.0)


@pytest.mark.nightly
@pytest.mark.parametrize("n_pairs", [80, pytest.param(FAULTY_PAIRS, marks=pytest.mark.nightly)])
def test_a_fault_on_one_side_never_makes_a_wrong_verdict(n_pairs: int) -> None:
    counts, n_right = count_verdicts(n_pairs)
    assert {fault: count["wrong"] for fault, count in counts.items()} == dict.fromkeys(FAULTS, 0)
    assert all(count["right"] and count["inconclusive"] for count in counts.values())
    assert n_right == n_pairs


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.situation}: {claim.says}")
def test_the_page_has_what_was_measured(claim: CoinClaim) -> None:
    table = measured_table.table_of(PAGE.read_text(encoding="utf-8"), name="measured edges")
    [line] = [line for line in table.splitlines() if line.startswith(f"| {claim.situation} | {claim.says} | ")]
    assert line.endswith(f" | {claim.aim} |")
    assert claim.is_kept(float(line.split(" | ")[2].removesuffix(" %")) / 100)
