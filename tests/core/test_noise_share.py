"""How much of a difference is noise: what is said covers noise at its level; nothing is said where none was seen."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulated_share import SITUATIONS, Situation
from evalboard.core.stats import NOISE_LEVEL, estimate_difference, find_beyond, measure_noise_share
from evalboard.wording.noise_share import write_noise_share

NONE = (False, False)


@pytest.mark.parametrize("n_pairs", [60, pytest.param(200, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("situation", [each for each in SITUATIONS if each.at_least], ids=lambda each: each.name)
def test_noise_alone_moves_a_difference_by_no_more_than_is_said(situation: Situation, n_pairs: int) -> None:
    covered, _ = situation.measure(n_pairs)
    promised = situation.at_least or 0
    assert covered >= promised - 2.5 * math.sqrt(promised * (1 - promised) / n_pairs)


def test_two_sides_that_show_noise_have_the_standard_error_of_their_verdict() -> None:
    baseline, candidate = (np.random.default_rng(seed).random((60, 5)).round() for seed in (1, 2))
    share = measure_noise_share(baseline, candidate, is_one_draw=NONE)
    assert share.up_to == estimate_difference(baseline, candidate).half_width(0.025)


def test_a_side_that_is_one_draw_scatters_like_one_repeat_of_the_other() -> None:
    baseline, candidate = (np.random.default_rng(seed).random((60, 5)).round() for seed in (1, 2))
    steady = np.repeat(baseline[:, :1], 5, axis=1)
    one, both = (measure_noise_share(steady, candidate, is_one_draw=(is_one, False)).up_to for is_one in (True, False))
    assert one is not None
    assert both is not None
    assert one > 1.5 * both


@pytest.mark.parametrize(
    ("repeats", "is_one_draw", "reason"),
    [((5, 5), (True, True), "one_draw"), ((1, 1), NONE, "one_repeat"), ((5, 1), (True, False), "one_draw")],
)
def test_nothing_is_said_where_no_repeat_measured_noise(
    repeats: tuple[int, int], is_one_draw: tuple[bool, bool], reason: str
) -> None:
    share = measure_noise_share(np.ones((8, repeats[0])), np.zeros((8, repeats[1])), is_one_draw=is_one_draw)
    assert (share.up_to, share.reason) == (None, reason)


@given(difference=st.floats(-100, 100), up_to=st.floats(0, 100))
def test_what_is_not_noise_lies_between_nothing_and_the_whole_difference(difference: float, up_to: float) -> None:
    rest = find_beyond(difference, up_to)
    assert 0 <= rest <= difference or difference <= rest <= 0
    assert abs(difference) - abs(rest) <= up_to + 1e-9


def sentence(difference: float, up_to: float | None, reason: str | None = None, near_ties: float | None = None) -> str:
    facts = {"difference": difference, "up_to": up_to, "reason": reason, "near_ties": near_ties, "level": NOISE_LEVEL}
    return write_noise_share(facts)


@pytest.mark.parametrize(
    ("difference", "up_to", "text"),
    [
        (-1.2, 0.37, "at most ±0.4 points (95 %). At least −0.8 of −1.2 points is not noise."),
        (1.2, 0.37, "at most ±0.4 points (95 %). At least +0.8 of +1.2 points is not noise."),
        (-0.3, 0.37, "at most ±0.4 points (95 %). All of −0.3 points may be noise."),
        (0.0, 0.37, "at most ±0.4 points (95 %)."),
        (-0.052, 0.012, "at most ±0.02 points (95 %). At least −0.03 of −0.05 points is not noise."),
    ],
)
def test_the_sentence_adds_up_and_never_calls_too_much_a_change(difference: float, up_to: float, text: str) -> None:
    assert sentence(difference, up_to) == f"Noise moves this score by {text}"


def test_where_nothing_was_measured_the_reason_is_said_and_what_near_ties_moved() -> None:
    assert sentence(-1.2, None, "one_repeat") == "Noise was not measured. It takes two repeats on one side."
    assert sentence(0.01, None, "one_draw", 0.34) == (
        "All repeats were identical, so noise under other batching was not measured. "
        "Near ties account for +0.3 points. Noise alone can decide a near tie."
    )
