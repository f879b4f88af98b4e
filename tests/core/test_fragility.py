"""The margins of one run say which cases flip; what they do not say stays unknown."""

import math

import numpy as np
import pytest

from evalboard.core.stats import fragility
from evalboard.core.trace.trace import TokenTrace, make_trace


def with_margins(*margins: float) -> TokenTrace:
    return make_trace([1] * len(margins), [-0.25] * len(margins), [[(1, -0.25), (2, -0.25 - m)] for m in margins])


def chance(*margins: float, sd: float = 0.1) -> float:
    return float(fragility.predict_flip_chances([with_margins(*margins)], sd)[0])


def test_an_exact_tie_falls_either_way() -> None:
    assert chance(0.0) == 0.5
    assert chance(0.0, 0.0) == 0.75


def test_a_margin_of_one_sd_flips_as_often_as_a_normal_goes_below_it() -> None:
    assert chance(0.1) == pytest.approx(0.1587, abs=1e-4)
    assert chance(0.1, 9.0, 9.0) == pytest.approx(chance(0.1))


def test_many_wide_margins_add_up_and_none_is_lost_to_rounding() -> None:
    one = 0.5 * math.erfc(5.5 / math.sqrt(2))  # 2e-8: a product of numbers near 1 would lose most of it
    assert chance(*[0.55] * 1000) == pytest.approx(1000 * one, rel=1e-3)


def test_a_wider_noise_never_makes_a_flip_less_likely() -> None:
    chances = [chance(0.05, 0.4, 2.0, sd=sd) for sd in (0.0005, 0.01, 0.09, 0.5)]
    assert chances == sorted(chances)
    assert chances[0] < 1e-6 < 0.2 < chances[-1]


def test_traces_are_kept_apart() -> None:
    traces = [with_margins(9.0), with_margins(0.0, 9.0), with_margins(9.0, 9.0, 9.0)]
    found = fragility.predict_flip_chances(traces, 0.1)
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx([0, 0.5, 0])
    assert fragility.is_likely_flip(found).tolist() == [False, True, False]


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(make_trace([1], [-0.25], [[(1, -0.25)]]), id="one-token-listed"),
        pytest.param(make_trace([], [], []), id="no-position"),
    ],
)
def test_without_a_margin_nothing_is_known(trace: TokenTrace) -> None:
    found = fragility.predict_flip_chances([trace, with_margins(0.0)], 0.1)
    assert np.isnan(found[0])
    assert found[1] == 0.5
    assert fragility.is_likely_flip(found).tolist() == [False, True]


def test_no_trace_at_all() -> None:
    assert fragility.predict_flip_chances([], 0.1).tolist() == []


def test_a_position_without_a_second_token_had_no_other_choice() -> None:
    partly = make_trace([1, 2], [-0.25, 0.0], [[(1, -0.25), (2, -0.25)], [(2, 0.0)]])
    assert fragility.predict_flip_chances([partly], 0.1)[0] == 0.5
    forced = make_trace([1], [0.0], [[(1, 0.0), (2, -math.inf)]])
    assert fragility.predict_flip_chances([forced], 0.1)[0] == 0


def test_the_noise_is_the_floor_of_the_logits_dtype() -> None:
    assert fragility.assume_logit_sd("float32") == 0.0005
    assert (
        fragility.assume_logit_sd(None)
        == fragility.assume_logit_sd("something")
        == fragility.assume_logit_sd("bfloat16")
        == 0.09
    )


@pytest.mark.parametrize("sd", [0.01, 0.02])
def test_predicted_flips_happen(sd: float) -> None:
    """Seeded simulation: the mean predicted chance is the share that flips, and the likely cases hold most flips."""
    rng = np.random.default_rng(20261121)
    n, length = 400, 200
    scale = rng.lognormal(1.0, 1.0, n)  # some cases are sure of themselves, some are not
    margins = rng.exponential(scale[:, None], (n, length))
    predicted = fragility.predict_flip_chances([with_margins(*row) for row in margins.tolist()], sd)
    flips = np.zeros(n)
    for _ in range(20):
        flips += (margins + rng.normal(0, sd, (n, length)) < 0).any(axis=1)
    assert predicted.mean() == pytest.approx(flips.mean() / 20, abs=0.01)
    assert flips[fragility.is_likely_flip(predicted)].sum() > 0.8 * flips.sum()
