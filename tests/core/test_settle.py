"""What would settle a difference, worked out by hand."""

import math
from dataclasses import replace

import pytest

from evalboard.core import paired, policy, settle
from evalboard.core.paired import Estimate
from tests.core.questions import PAIRED, STRICT, runs


def at(difference: float, se: float) -> Estimate:
    return Estimate(difference=difference, se=se, df=None, method="flips")


@pytest.mark.parametrize(
    ("k", "look"), [(0, None), (1, None), (4, None), (5, 5), (9, 5), (10, 10), (19, 10), (20, 20), (50, 20)]
)
def test_only_whole_looks_decide(k: int, look: int | None) -> None:
    assert settle.look_at(STRICT, k) == look


def test_the_cases_that_it_takes() -> None:
    assert settle.cases_needed(STRICT) == {5: 93, 10: 57, 20: 29}
    quick = policy.parse({"rule": "strict", "tolerance_points": 1.0, "looks": [3, 10, 20]})
    assert settle.cases_needed(quick) == {3: 154, 10: 57, 20: 29}
    wide = policy.parse({"rule": "strict", "tolerance_points": 5.0})
    assert settle.cases_needed(wide) == {5: 19, 10: 12, 20: 6}


@pytest.mark.parametrize(("look", "n_cases"), [(5, 93), (10, 57), (20, 29)])
def test_that_many_cases_are_enough_and_one_less_is_not(look: int, n_cases: int) -> None:
    assert not settle.is_too_small(n_cases, look, STRICT)
    assert settle.is_too_small(n_cases - 1, look, STRICT)


@pytest.mark.parametrize(
    ("difference", "se", "look"),
    [
        # (2.326 + 0.842) · se · √5 over the distance to −1, squared: 8.0, 18.1, 40.1 repeats in all.
        pytest.param(-0.25, 0.3, 10, id="the-next-look"),
        pytest.param(-0.5, 0.3, 20, id="the-last-look"),
        pytest.param(-1.5, 0.3, 20, id="from-the-other-side"),
        pytest.param(-0.66, 0.304, None, id="beyond-the-last-look"),
        pytest.param(-1.0, 0.1, None, id="on-the-line"),
    ],
)
def test_the_look_that_would_settle_it(difference: float, se: float, look: int | None) -> None:
    found = settle.find_settling(at(difference, se), 5, PAIRED)
    assert found.look == look
    assert found.within == pytest.approx((2.326348 + 0.841621) * se * math.sqrt(5 / 20), rel=1e-5)


def test_after_the_last_look_there_is_none() -> None:
    assert settle.find_settling(at(-0.5, 0.3), 20, PAIRED).look is None


def test_the_interval_to_expect_narrows_with_repeats() -> None:
    steady = runs(*[60] * 5, n_cases=80)
    measured = paired.measure(steady, steady)
    found = settle.expected(-0.5, measured, 20, STRICT)
    half = 100 * 2.326348 * math.sqrt(2 * (3 / 20) / 20) / 80
    assert (found.repeats, found.low, found.high) == (20, pytest.approx(-0.5 - half), pytest.approx(-0.5 + half))


def test_a_suite_too_small_now_may_do_at_a_later_look() -> None:
    for n_cases, difference, look in ((30, 0.0, 20), (60, 0.0, 10), (28, 0.0, None), (30, -0.9, None)):
        steady = runs(*[20] * 5, n_cases=n_cases)
        measured = paired.measure(steady, steady)
        assert settle.find_settling_of_few(difference, measured, 5, STRICT).look == look, n_cases


@pytest.mark.parametrize(
    ("difference", "lean"), [(0.0, "ship"), (-0.49, "ship"), (-0.5, "none"), (-1.5, "none"), (-1.51, "no_ship")]
)
def test_an_open_difference_leans_by_half_a_tolerance(difference: float, lean: str) -> None:
    assert settle.leaning(difference, 1.0) == lean


@pytest.mark.parametrize(("difference", "lean"), [(0.0, "ship"), (-1.0, "none"), (-2.0, "no_ship")])
def test_too_few_repeats_lean_by_their_interval(difference: float, lean: str) -> None:
    assert settle.leaning_of(at(difference, 0.5), 0.05, 1.0) == lean
    assert settle.leaning_of(at(difference, 5.0), 0.05, 1.0) == "none"


def test_a_wider_tolerance_needs_fewer_cases() -> None:
    needed = [settle.cases_needed(replace(STRICT, tolerance_points=tolerance))[5] for tolerance in (0.5, 1.0, 2.0, 5.0)]
    assert needed == sorted(needed, reverse=True)
