"""The error rates that docs/verdict.md promises, by seeded simulation; `make bench` takes more pairs of them."""

import math
from pathlib import Path
from statistics import mean

import pytest

from tests.bench import measured_table, simulated, simulated_draws, simulated_settling
from tests.bench.simulated import BATCHED, CLAIMS, PINNED, Claim

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verdict.md"
PROMISED = tuple(claim for claim in CLAIMS if claim.aim)
# Enough for a rule that breaks its promise by as much again to fail, few enough for a test.
PAIRS, PAIRS_FOLLOWED = 250, 120


@pytest.mark.parametrize("claim", PROMISED, ids=lambda claim: f"{claim.situation}: {claim.says}")
def test_a_promised_rate_is_kept(claim: Claim) -> None:
    share = claim.measure(PAIRS if claim.look else PAIRS_FOLLOWED)
    assert claim.is_kept(share), f"{100 * share:.1f} %, and {claim.aim} is promised"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.situation}: {claim.says}")
def test_the_page_has_the_promise_and_what_was_measured(claim: Claim) -> None:
    table = measured_table.table_of(PAGE.read_text(encoding="utf-8"))
    rows = [line.split(" | ") for line in table.splitlines()]
    [measured] = [row[2] for row in rows if row[0] == f"| {claim.situation}" and row[1] == claim.says]
    assert claim.is_kept(float(measured.removesuffix(" %")) / 100)
    assert f"| {claim.situation} | {claim.says} | {measured} | {claim.aim} |" in table


@pytest.mark.parametrize("claim", simulated_draws.CLAIMS, ids=lambda claim: f"{claim.situation}: {claim.says}")
def test_a_promise_of_sampled_runs_is_kept(claim: simulated_draws.DrawnClaim | simulated_draws.Narrower) -> None:
    found = claim.measure(PAIRS_FOLLOWED if isinstance(claim, simulated_draws.DrawnClaim) and not claim.look else PAIRS)
    assert claim.is_kept(found), f"{claim.told(found)}, and {claim.aim} is promised"


@pytest.mark.parametrize("claim", simulated_draws.CLAIMS, ids=lambda claim: f"{claim.situation}: {claim.says}")
def test_the_page_has_what_was_measured_of_sampled_runs(
    claim: simulated_draws.DrawnClaim | simulated_draws.Narrower,
) -> None:
    table = measured_table.table_of(PAGE.read_text(encoding="utf-8"))
    [line] = [line for line in table.splitlines() if line.startswith(f"| {claim.situation} | {claim.says} | ")]
    told = line.split(" | ")[2]
    assert claim.is_kept(float(told.split(" ")[0]) / (100 if told.endswith("%") else 1))
    assert line.endswith(f" | {claim.aim} |")


def test_without_a_range_guard_repeats_settle_what_a_guard_leaves_open() -> None:
    """No change, batched: `strict` mostly stays inconclusive, `paired` mostly ships."""
    made = list(simulated.pairs(60, BATCHED))
    strict = [simulated.judge(pair, simulated.STRICT).verdict for pair in made]
    paired = [simulated.judge(pair).verdict for pair in made]
    assert strict.count("inconclusive") > 30 > paired.count("inconclusive")


def test_the_simulated_runs_are_as_noisy_as_they_are_said_to_be() -> None:
    for regime, sd in ((PINNED, 0.11), (BATCHED, 0.48)):
        spread = [100 * pair.baseline.mean(axis=0).std(ddof=1) for pair in simulated.pairs(150, regime, k=10)]
        assert sum(spread) / len(spread) == pytest.approx(sd, abs=0.03)


def test_the_simulated_change_is_exactly_the_one_that_was_asked_for() -> None:
    [pair] = simulated.pairs(1, simulated.Regime("still", 0.0), difference=-2.0)
    assert 100 * (pair.candidate.mean() - pair.baseline.mean()) == pytest.approx(-2.0)
    assert (pair.candidate[:, 0] != pair.baseline[:, 0]).sum() == 16 + 16  # the drop, and the churn beside it
    with pytest.raises(ValueError, match="no whole number"):
        next(simulated.pairs(1, PINNED, difference=-0.3))


@pytest.mark.parametrize(("setting", "n_pairs"), list(zip(simulated_settling.SETTINGS[:2], (25, 10), strict=True)))
def test_what_is_said_of_further_repeats_comes_true(setting: simulated_settling.Setting, n_pairs: int) -> None:
    """Of the lower and of the higher half of the chances, within ten points and what so few comparisons leave open."""
    said = sorted(simulated_settling.follow(setting, n_pairs), key=lambda each: each.chance)
    for half in (said[: len(said) // 2], said[len(said) // 2 :]):
        chance = mean(each.chance for each in half)
        scatter = 2 * math.sqrt(chance * (1 - chance) / len(half))
        assert len(half) > 25
        assert mean(each.is_settled for each in half) == pytest.approx(chance, abs=0.1 + scatter)
    assert mean(each.is_settled for each in said if each.is_hopeless) <= 0.1
    assert mean(each.is_settled_by_the_last for each in said if each.is_hopeless_by_root) > 0.25
