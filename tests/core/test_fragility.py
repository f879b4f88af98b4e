"""The margins of one run say which cases flip; what they do not say stays unknown."""

import math

import numpy as np
import pytest

from evalboard.core.stats import EarlierNoise, PairedNoise, fragility, measure_noise
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


def earlier(n_flips: int, foretold: float | None = 4.0, *, m: int = 10, n: int = 200) -> EarlierNoise:
    """Repeats of earlier runs in which so many cases answered otherwise once, each in a repeat of its own turn."""
    scores = np.ones((n, m))
    for case in range(n_flips):
        scores[case, case % m] = 0
    chances = None if foretold is None else np.full(n, foretold / n, np.float32)
    return fragility.measure_earlier(scores, chances)


def one_run_each(*, k: int = 1, n_apart: int = 0) -> PairedNoise:
    """Both sides of 200 cases; n_apart of the baseline's answer otherwise in its last repeat."""
    baseline = np.ones((200, k))
    baseline[:n_apart, -1] = 0
    return measure_noise(baseline, np.ones((200, k)))


def test_earlier_repeats_tell_the_noise_of_one_run_on_each_side() -> None:
    both = fragility.estimate_early(0.0, one_run_each(), earlier(20), earlier(20))
    assert both is not None
    assert both.se == pytest.approx(100 * math.sqrt(2 * 20 / 10) / 200)  # Σ s² of a side: 20 cases of 1/10
    assert both.method == "early"


def test_a_side_without_earlier_runs_borrows_noise_by_what_margins_predict_of_both() -> None:
    half, same, twice = (
        fragility.estimate_early(0.0, one_run_each(), earlier(20), earlier(0, foretold, m=0)) for foretold in (2, 4, 8)
    )
    assert half is not None
    assert same is not None
    assert twice is not None
    assert half.se == same.se == pytest.approx(100 * math.sqrt(2 + 1.25 * 2) / 200)  # never calmer than the other
    assert twice.se == pytest.approx(100 * math.sqrt(2 + 2 * 1.25 * 2) / 200)


def test_what_few_repeats_never_showed_may_still_happen() -> None:
    calm = fragility.estimate_early(0.0, one_run_each(), earlier(0), earlier(0, m=0))
    assert calm is not None
    assert calm.se == pytest.approx(100 * math.sqrt(3 / 10 + 3 / 5) / 200)


@pytest.mark.parametrize(
    "sides",
    [
        (earlier(20, m=9), earlier(20, m=9)),  # too few
        (earlier(20), earlier(0, None, m=0)),  # nothing carries the noise over to the other side
        (earlier(20, None), earlier(0, m=0)),
        (EarlierNoise(), EarlierNoise()),
    ],
)
def test_nothing_is_foretold_without_enough_earlier_runs_or_margins(sides: tuple[EarlierNoise, EarlierNoise]) -> None:
    assert fragility.estimate_early(0.0, one_run_each(), *sides) is None


def test_earlier_runs_that_moved_as_a_whole_foretell_nothing() -> None:
    scores = np.ones((200, 10))
    scores[:20, 5:] = 0
    assert fragility.measure_earlier(scores, None).n_repeats == 0


def test_own_repeats_count_with_the_earlier_ones_until_they_show_clearly_more_noise() -> None:
    quiet, noisy = one_run_each(k=2, n_apart=4), one_run_each(k=2, n_apart=12)
    early = fragility.estimate_early(0.0, quiet, earlier(20), earlier(20))
    assert early is not None
    ours, theirs = (10 * 2 + 2 * 2) / 12, (10 * 2 + 2 * 0) / 12
    assert early.se == pytest.approx(100 * math.sqrt((ours + theirs) / 2) / 200)
    assert fragility.estimate_early(0.0, noisy, earlier(20), earlier(20)) is None


def test_a_side_whose_second_run_lies_far_off_foretells_nothing() -> None:
    """Few flips in each case, and all to one side: whole runs moved."""
    assert fragility.estimate_early(0.0, one_run_each(k=2, n_apart=8), earlier(40), earlier(40)) is None
