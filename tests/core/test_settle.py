"""What would settle a difference, worked out by hand."""

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from evalboard.core.release import TargetedScores, settle
from evalboard.core.release.settle import SettlingLook
from evalboard.core.release.targeted import choose_entering
from evalboard.core.stats import paired
from evalboard.core.stats.paired import DifferenceEstimate
from evalboard.core.suite import TARGETED_REPEATS, policy
from tests.core.questions import PAIRED, STRICT, runs


def at(difference: float, se: float) -> DifferenceEstimate:
    return DifferenceEstimate(difference=difference, se=se, df=None, method="flips")


@pytest.mark.parametrize(
    ("k", "look"), [(0, None), (1, None), (4, None), (5, 5), (9, 5), (10, 10), (19, 10), (20, 20), (50, 20)]
)
def test_only_whole_looks_decide(k: int, look: int | None) -> None:
    assert settle.choose_look(STRICT, k) == look


def test_the_cases_that_it_takes() -> None:
    assert settle.count_cases_needed(STRICT) == {5: 93, 10: 52, 20: 26}
    assert settle.count_cases_needed(STRICT, share_seeds=True) == {5: 66, 10: 37, 20: 19}  # by √2 fewer
    quick = policy.parse_policy({"rule": "strict", "tolerance_points": 1.0, "looks": [3, 10, 20]})
    assert settle.count_cases_needed(quick) == {3: 154, 10: 54, 20: 27}
    wide = policy.parse_policy({"rule": "strict", "tolerance_points": 5.0})
    assert settle.count_cases_needed(wide) == {5: 19, 10: 11, 20: 6}


@pytest.mark.parametrize(("look", "n_cases"), [(5, 93), (10, 52), (20, 26)])
def test_that_many_cases_are_enough_and_one_less_is_not(look: int, n_cases: int) -> None:
    assert not settle.is_too_small(n_cases, look, STRICT)
    assert settle.is_too_small(n_cases - 1, look, STRICT)


Z_LATER = 2.120072  # of 0.017


def flipping(n_flips: int, n_cases: int = 800) -> paired.PairedNoise:
    """Two sides of five repeats of which n_flips cases pass twice: Σ s² is 0.3 n_flips on each side."""
    side = np.ones((n_cases, 5))
    for case in range(n_flips):
        side[case, [case % 5, (case + 1) % 5]] = 0
    return paired.measure_noise(side, side)


@pytest.mark.parametrize(("difference", "n_flips"), [(-0.7, 49), (-1.0, 49), (-1.3, 49), (-0.9, 1)])
@pytest.mark.parametrize("look", [10, 20])
def test_a_chance_is_that_of_the_difference_at_a_later_look(difference: float, n_flips: int, look: int) -> None:
    """At K repeats it is normal about today's, of variance s²·(1/5 − 1/K); its interval has a floor of 3/K."""
    found = settle.settling_chance(difference, flipping(n_flips), look, PAIRED)
    one_repeat = 100 * math.sqrt(2 * 0.3 * n_flips) / 800
    moves = one_repeat * math.sqrt(1 / 5 - 1 / look)
    half = 100 * Z_LATER * math.sqrt(2 * max(0.3 * n_flips, 3 / look) / look) / 800
    later = NormalDist(difference, moves)
    assert found == pytest.approx(1 - later.cdf(-1 + half) + later.cdf(-1 - half), rel=1e-4)


def test_what_was_never_seen_to_flip_weighs_less_at_later_looks() -> None:
    """Within ±0.12 of the tolerance at 5 repeats: open. ±0.07 at 10, for the floor falls as 1/k."""
    measured = flipping(0)
    assert settle.find_settling(-0.9, measured, 5, PAIRED) == SettlingLook(10, 1.0)
    assert settle.find_settling(-0.95, measured, 5, PAIRED) == SettlingLook(20, 1.0)
    assert settle.find_settling(-1.0, measured, 5, PAIRED) == SettlingLook(None, 0.0)
    assert settle.find_settling(-1.1, measured, 5, PAIRED) == SettlingLook(10, 1.0)


def test_the_first_look_that_is_likely_is_named_else_the_best_chance() -> None:
    for difference, look in ((-0.4, 10), (-0.52, 20)):
        likely = settle.find_settling(difference, flipping(30), 5, PAIRED)
        assert (likely.look, likely.is_likely) == (look, True)
    even = settle.find_settling(-0.9, flipping(49), 5, PAIRED)
    assert (even.look, even.is_likely) == (20, False)
    assert (
        even.chance
        == settle.settling_chance(-0.9, flipping(49), 20, PAIRED)
        > settle.settling_chance(-0.9, flipping(49), 10, PAIRED)
    )


def test_on_the_tolerance_after_ten_repeats_hardly_anything_is_left_to_hope_for() -> None:
    side = np.ones((800, 10))
    for case in range(49):
        side[case, [case % 10, (case + 1) % 10, (case + 2) % 10]] = 0
    measured = paired.measure_noise(side, side)
    found = settle.find_settling(-1.0, measured, 10, PAIRED)
    assert (found.look, found.chance) == (None, pytest.approx(2 * 0.017, abs=0.001))
    rarely, sometimes = (settle.find_settling(difference, measured, 10, PAIRED) for difference in (-0.9, -0.85))
    assert (rarely.look, sometimes.look) == (None, 20)
    assert 0.05 < rarely.chance < settle.MIN_CHANCE < sometimes.chance < 0.2


def test_after_the_last_look_there_is_none() -> None:
    assert settle.find_settling(-0.5, flipping(49), 20, PAIRED) == SettlingLook(None, 0.0)


def test_a_guard_that_repeats_will_break_leaves_them_little_chance() -> None:
    """A range of five of 1.15 points to expect: hardly ever within a guard of 1.0 at 20 repeats, always within 3.0."""
    measured = flipping(52)
    free = settle.settling_chance(-0.5, measured, 20, PAIRED)
    assert settle.settling_chance(-0.5, measured, 20, STRICT) < 0.1 < 0.7 < free
    assert settle.settling_chance(-0.5, measured, 20, replace(STRICT, guard_points=3.0)) == pytest.approx(free)


def test_the_interval_to_expect_narrows_with_repeats() -> None:
    steady = runs(*[60] * 5, n_cases=80)
    measured = paired.measure_noise(steady, steady)
    found = settle.expect_interval(-0.5, measured, 20, STRICT)
    half = 100 * 2.120072 * math.sqrt(2 * (3 / 20) / 20) / 80
    assert (found.repeats, found.low, found.high) == (20, pytest.approx(-0.5 - half), pytest.approx(-0.5 + half))


def test_a_suite_too_small_now_may_do_at_a_later_look() -> None:
    for n_cases, difference, look in ((30, 0.0, 20), (60, 0.0, 10), (25, 0.0, None), (30, -0.9, None)):
        steady = runs(*[20] * 5, n_cases=n_cases)
        measured = paired.measure_noise(steady, steady)
        assert settle.find_settling(difference, measured, 5, STRICT).look == look, n_cases


@pytest.mark.parametrize(
    ("difference", "lean"), [(0.0, "ship"), (-0.49, "ship"), (-0.5, "none"), (-1.5, "none"), (-1.51, "no_ship")]
)
def test_an_open_difference_leans_by_half_a_tolerance(difference: float, lean: str) -> None:
    assert settle.name_leaning(difference, 1.0) == lean


@pytest.mark.parametrize(("difference", "lean"), [(0.0, "ship"), (-1.0, "none"), (-2.0, "no_ship")])
def test_too_few_repeats_lean_by_their_interval(difference: float, lean: str) -> None:
    assert settle.estimate_leaning(at(difference, 0.5), 0.05, 1.0) == lean
    assert settle.estimate_leaning(at(difference, 5.0), 0.05, 1.0) == "none"


def test_a_wider_tolerance_needs_fewer_cases() -> None:
    needed = [
        settle.count_cases_needed(replace(STRICT, tolerance_points=tolerance))[5] for tolerance in (0.5, 1.0, 2.0, 5.0)
    ]
    assert needed == sorted(needed, reverse=True)


def test_repeats_of_the_noisiest_cases_are_offered_only_while_runs_do_not_move_as_a_whole() -> None:
    """Each of 100 noisy cases of 800 fails once in five repeats: in turn, or all in the same. The rest is clear."""
    noisy = np.arange(800) < 100
    apart, together = np.ones((800, 5)), np.ones((800, 5))
    apart[np.arange(100), np.arange(100) % 5] = 0
    together[:100, 0] = 0
    strata = paired.Strata(noisy, 5)
    by_strata = [paired.measure_noise(side, side[:, ::-1], strata=strata) for side in (apart, together)]
    offered = [settle.find_targeted(20.0, measured, 5, PAIRED) for measured in by_strata]
    assert offered[0] is not None
    assert (offered[0].n_cases, offered[1]) == (100, None)
    assert settle.find_targeted(20.0, by_strata[0], 20, PAIRED) is None  # after the last checkpoint
    near = settle.find_targeted(-0.7, by_strata[0], 5, PAIRED)
    assert near is not None
    assert 0.2 < near.chance < 0.4
    steady = paired.measure_noise(np.ones((800, 5)), np.ones((800, 5)), strata=strata)
    assert settle.find_targeted(-1.0, steady, 5, PAIRED) is None  # on the tolerance nothing is left to hope for


def test_repeats_of_the_noisiest_cases_stay_in_at_a_later_look() -> None:
    """Four further repeats of 100 noisy cases: at 10 repeats these have 14."""
    side = np.full((800, 9), np.nan)
    side[:, :5] = side[:100] = 1
    side[np.arange(100), np.arange(100) % 9] = 0
    measured = paired.measure_noise(
        side, side[:, [4, 3, 2, 1, 0, 8, 7, 6, 5]], strata=paired.Strata(np.arange(800) < 100, 5)
    )
    there = paired.scale_noise(measured, 10, 4)
    low, high = paired.make_estimate(-0.9, there).interval(PAIRED.alpha(10))
    found = settle.expect_interval(-0.9, measured, 10, PAIRED)
    assert (found.low, found.high) == (low, high)
    moves = math.sqrt(paired.se_seen(measured) ** 2 - paired.se_seen(there) ** 2)
    later, half = NormalDist(-0.9, moves), (high - low) / 2
    chance = settle.settling_chance(-0.9, measured, 10, PAIRED)
    assert chance == pytest.approx(1 - later.cdf(-1 + half) + later.cdf(-1 - half))


def test_targeted_repeats_enter_only_as_many_as_their_checkpoint_needs() -> None:
    n = TARGETED_REPEATS[5]
    for n_baseline, n_candidate, n_entering in ((n, n, n), (n + 1, n, n), (n, n - 1, None)):
        sides = {"baseline": np.ones((8, n_baseline)), "candidate": np.ones((8, n_candidate))}
        added = TargetedScores(is_chosen=np.ones(8, np.bool_), n_before=5, **sides)
        look, entering = choose_entering(5, added, PAIRED, is_sampled=False)
        assert (look, entering and entering.candidate.shape[1]) == (5, n_entering)
