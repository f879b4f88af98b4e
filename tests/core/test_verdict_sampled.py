"""Verdicts over sampled runs: draws that share their seeds, draws that do not, and repeats that are one draw."""

import math
from typing import Any

import numpy as np
import pytest

from evalboard.core import paired, verdict
from evalboard.core.draws import Draws
from evalboard.core.gate import GateVerdict, Question
from evalboard.core.quantiles import t, z
from tests.core.questions import PAIRED, STRICT, question

FIVE = (1, 2, 3, 4, 5)
SEED_42, SEED_43 = Draws(0.7, 42, repeats=FIVE), Draws(0.7, 43, repeats=FIVE)
ONE = Draws(0.7, None, is_one=True, repeats=FIVE)


def drawn(ours: Draws = SEED_42, theirs: Draws = SEED_42, *, n_parted: int = 16, n_cases: int = 800) -> Question:
    """Every case passes about 3 times in 5; the sides draw alike but for some cases, which draw by themselves."""
    rng = np.random.default_rng(11)
    baseline = (rng.random((n_cases, 5)) < 0.6).astype(np.float64)
    candidate = baseline.copy()
    candidate[:n_parted] = rng.random((n_parted, 5)) < 0.6
    return question(baseline, candidate, draws_baseline=ours, draws_candidate=theirs)


def width(found: GateVerdict) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


def codes(lines: Any) -> list[str]:
    return [line.code for line in lines]


def test_draws_of_one_seed_are_held_against_each_other() -> None:
    """V = max(Σ var of the differences, 3/5) / 800², SE = sqrt(V/5); 2 % of cases parted, the rest cancels."""
    asked = drawn()
    found = verdict.judge(asked, PAIRED)
    differences = asked.candidate - asked.baseline
    se = 100 * math.sqrt(differences.var(axis=1, ddof=1).sum() / 5) / 800
    assert (found.verdict, found.method) == ("ship", "seeds")
    assert width(found) == pytest.approx(2 * z(0.97) * se)
    assert codes(found.warnings)[0] == "sampled"
    assert "both sides were drawn by seed 42" in found.warnings[0].text
    assert width(verdict.judge(drawn(theirs=SEED_43), PAIRED)) > 5 * width(found)


def test_models_that_draw_alike_are_settled_to_what_was_never_seen() -> None:
    found = verdict.judge(drawn(n_parted=0), PAIRED)
    assert found.difference == 0.0
    assert width(found) == pytest.approx(2 * z(0.97) * 100 * math.sqrt(0.6 / 5) / 800)
    # One noise has to show itself, and not one a side: 93 cases at 5 repeats become 66.
    assert found.cases_needed[5] == 66


@pytest.mark.parametrize(
    ("theirs", "why"),
    [
        (SEED_43, "seed 42 against 43"),
        (Draws(0.7, None, repeats=FIVE), "they share no seeds"),
        (Draws(0.7, 42, repeats=(1, 2, 3, 4, 6)), "their repeats are not the same ones"),
    ],
)
def test_without_shared_seeds_draws_are_independent_and_the_verdict_says_so(theirs: Draws, why: str) -> None:
    found = verdict.judge(drawn(theirs=theirs), PAIRED)
    greedy = verdict.judge(drawn(Draws(), Draws()), PAIRED)
    assert (found.low, found.high, found.method) == (greedy.low, greedy.high, "flips")
    assert why in found.warnings[0].text
    if found.verdict == "inconclusive":
        assert codes(found.next)[0] == "share_seeds"


def test_which_formula_holds_is_decided_before_any_score_is_looked_at() -> None:
    """Draws that go against each other make the shared interval the wider one, and it stays."""
    ours = np.tile([1.0, 0.0, 1.0, 0.0, 1.0], (800, 1))
    ours[400:] = 1 - ours[400:]
    shared = verdict.judge(question(ours, 1 - ours, draws_baseline=SEED_42, draws_candidate=SEED_42), PAIRED)
    apart = verdict.judge(question(ours, 1 - ours, draws_baseline=SEED_42, draws_candidate=SEED_43), PAIRED)
    assert width(shared) > 1.2 * width(apart)


def test_the_guard_is_not_asked_of_draws() -> None:
    """The range is the sampler's: under strict as under paired the paired data decide, and nothing is called noisy."""
    ours = np.zeros((800, 5))
    for repeat, n in enumerate((400, 420, 440, 460, 480)):
        ours[:n, repeat] = 1
    greedy = verdict.judge(question(ours, ours), STRICT)
    assert codes(greedy.reasons) == ["noisy"]
    found = verdict.judge(question(ours, ours, draws_baseline=SEED_42, draws_candidate=SEED_42), STRICT)
    assert found.verdict == "ship"
    assert "noisy_bucket" not in codes(found.warnings)


@pytest.mark.parametrize(("ours", "theirs"), [(ONE, SEED_42), (SEED_42, ONE), (ONE, ONE)])
def test_repeats_that_are_one_draw_take_no_verdict(ours: Draws, theirs: Draws) -> None:
    """Five equal repeats, or five that an unsteady engine made to differ: neither says how far a draw is off."""
    asked = drawn(ours, theirs)
    found = verdict.judge(asked, PAIRED)
    assert (found.verdict, codes(found.reasons), codes(found.next)) == ("inconclusive", ["one_draw"], ["draw_again"])
    assert found.repeats_needed is None
    assert "sent one seed at T = 0.7" in found.reasons[0].text
    for draws, side, k in ((ours, found.baseline, found.k_baseline), (theirs, found.candidate, found.k_candidate)):
        if draws.is_one:
            assert (k, side.sd_points, side.interval, side.disagreement_rate) == (1, None, None, None)
            assert len(side.points) == 1
    assert width(found) > width(verdict.judge(asked_as(asked, SEED_42), PAIRED))


def asked_as(asked: Question, draws: Draws) -> Question:
    return question(asked.baseline, asked.candidate, draws_baseline=draws, draws_candidate=draws)


def test_the_first_answer_that_is_there_stands_for_one_draw() -> None:
    asked = drawn(ONE, ONE)
    asked.baseline[0, 0] = np.nan
    found = verdict.judge(asked, PAIRED)
    assert (found.n_cases_judged, found.missing.n_baseline) == (800, 0)


def test_whole_runs_of_shared_draws_that_move_together_are_judged_by_runs() -> None:
    ours = np.ones((100, 5))
    theirs = ours.copy()
    theirs[:10, 1] = theirs[:20, 2] = theirs[:15, 3] = 0
    found = paired.estimate(ours, theirs, share_seeds=True)
    assert (found.method, found.df) == ("runs", 4)
    assert found.se == pytest.approx(100 * (theirs - ours).mean(axis=0).std(ddof=1) / math.sqrt(5))
    assert found.half_width(0.03) == pytest.approx(t(0.97, 4) * found.se)


@pytest.mark.parametrize("graded", [False, True])
def test_sides_mirror_and_order_changes_nothing_to_the_bit(graded: bool) -> None:
    rng = np.random.default_rng(4)
    ours, theirs = rng.random((2, 60, 5)) if graded else rng.integers(0, 2, (2, 60, 5)).astype(float)
    found = paired.estimate(ours, theirs, share_seeds=True)
    mirrored = paired.estimate(theirs, ours, share_seeds=True)
    assert (mirrored.se, mirrored.difference) == (found.se, -found.difference)
    cases, repeats = rng.permutation(60), rng.permutation(5)
    assert paired.estimate(ours[cases][:, repeats], theirs[cases][:, repeats], share_seeds=True) == found
    ours[0] = theirs[0] = 0.3
    still = paired.measure(ours[:1], theirs[:1], share_seeds=True)
    assert still.flips_shared == 0.0
