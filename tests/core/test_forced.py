"""What a reference holds of another stack's tokens: each number by hand, its interval, and exactly nothing."""

import math

import numpy as np
import pytest

from evalboard.contract.forced import ForcedFigures, GapsOfStretch, WorstToken
from evalboard.contract.parts import Estimate
from evalboard.core.forced import (
    ForcedPositions,
    list_worst,
    measure_forced,
    measure_positions,
    measure_responses,
)
from evalboard.core.forced.resampling import LEVEL, N_DRAWS, Resampler
from evalboard.core.stats import beta_quantile, normal_quantile, student_quantile
from evalboard.core.trace import NO_TOKEN, TokenTrace, join_traces, make_trace
from tests import make

NAN = math.nan


def scored(chosen: list[float], tops: list[float | None], ids: list[int] | None = None) -> TokenTrace:
    """The tokens 1, 2, … with their logprobs; tops: of a token 99, listed beside where there is one."""
    rows = [[] if top is None else [(99, top)] for top in tops]
    return make_trace(ids or list(range(1, len(chosen) + 1)), chosen, rows)


def lay(*pairs: tuple[TokenTrace, TokenTrace]) -> ForcedPositions:
    return measure_positions(join_traces([pair[0] for pair in pairs]), join_traces([pair[1] for pair in pairs]))


def draw_positions(log_ratios: list[list[float]], deficits: list[list[float]] | None = None) -> ForcedPositions:
    starts = np.concatenate([[0], np.cumsum([len(row) for row in log_ratios])])
    flat = np.concatenate([np.array(row, np.float64) for row in log_ratios])
    other = flat * 0 if deficits is None else np.concatenate([np.array(row, np.float64) for row in deficits])
    return ForcedPositions(starts, flat, other)


def value(estimate: Estimate | None) -> float:
    assert estimate is not None
    return estimate.value


def test_a_position_has_the_gap_and_the_deficit_of_its_token() -> None:
    positions = lay((scored([-0.5, -1.0, -0.25], [None] * 3), scored([-0.75, -1.0, -2.25], [-0.75, -2.0, -0.25])))
    assert positions.log_ratios.tolist() == [-0.25, 0.0, -2.0]
    assert positions.deficits.tolist() == [0.0, 0.0, 2.0]  # as likely as the top one, above it, below it
    assert positions.gaps.tolist() == [0.25, 0.0, 2.0]


def test_the_largest_alternative_counts_wherever_the_engine_lists_it() -> None:
    forced = make_trace([7], [-3.0], [[(7, -3.0), (8, -4.0), (9, -1.0)]])
    assert lay((scored([-3.0], [None], ids=[7]), forced)).deficits.tolist() == [2.0]


def test_an_unknown_number_is_no_number_of_the_others() -> None:
    sampled, forced = scored([NAN, -1.0, -math.inf], [None] * 3), scored([-1.0, -1.5, -1.0], [-0.5, None, -0.5])
    positions = lay((sampled, forced))
    assert np.isnan(positions.log_ratios).tolist() == [True, False, True]
    assert np.isnan(positions.deficits).tolist() == [False, True, False]
    figures = measure_forced(positions)
    assert (figures.n_positions, figures.n_compared, figures.n_ranked, figures.n_not_top) == (3, 1, 2, 2)
    assert value(figures.kl_k1) == 0.5
    assert value(figures.deficit_mean) == 0.5
    assert figures.sequence_kl is None  # the response lacks a factor


@pytest.mark.parametrize("forbidden", [-math.inf, -9999.0, -1e30])
def test_a_token_that_the_reference_forbids_is_very_far_and_not_infinitely(forbidden: float) -> None:
    figures = measure_forced(lay((scored([-1.0], [None]), scored([forbidden], [-0.5]))))
    assert value(figures.kl_k1) == 999.0
    assert value(figures.deficit_mean) == 999.5
    assert figures.weight_ess is None  # no weight is left


def test_tokens_of_another_response_are_refused() -> None:
    with pytest.raises(ValueError, match="has the tokens of the response"):
        lay((scored([-1.0], [None], ids=[3]), scored([-1.0], [None], ids=[4])))
    with pytest.raises(ValueError, match="has the tokens of the response"):
        lay((scored([-1.0, -1.0], [None] * 2), scored([-1.0], [None])))


def test_the_figures_by_hand() -> None:
    halved, doubled = math.log(0.5), math.log(2.0)
    figures = measure_forced(draw_positions([[0.0, halved], [doubled, 0.1]], [[0.0, 0.7], [0.0, 0.3]]))
    assert value(figures.match_rate) == 0.5
    assert value(figures.deficit_mean) == pytest.approx(0.25)
    assert value(figures.deficit_p99) == 0.7
    assert value(figures.gap_median) == pytest.approx(0.1)
    assert value(figures.gap_p99) == pytest.approx(math.log(2))
    assert value(figures.kl_k1) == pytest.approx(-0.1 / 4)
    assert value(figures.kl_k3) == pytest.approx((0 + (-0.5 - halved) + (1 - doubled) + (math.expm1(0.1) - 0.1)) / 4)
    assert value(figures.sequence_kl) == pytest.approx((-halved - doubled - 0.1) / 2)
    assert value(figures.beyond_clip) == 0.5  # half and twice, not e to 0.1
    weights = np.array([1, 0.5, 2, math.exp(0.1)])
    assert value(figures.weight_ess) == pytest.approx(weights.sum() ** 2 / (4 * (weights**2).sum()))
    products = np.array([0.5, 2 * math.exp(0.1)])
    assert value(figures.sequence_ess) == pytest.approx(products.sum() ** 2 / (2 * (products**2).sum()))
    assert figures.worst is not None
    assert figures.worst == WorstToken(answer="0", position=1, log_ratio=halved)


def test_each_response_by_itself_is_what_it_is_alone() -> None:
    ratios, deficits = [[0.3, -0.1], [], [0.0, 0.0], [NAN, 0.5]], [[0.0, 0.2], [], [0.0, 0.0], [NAN, NAN]]
    figures = measure_responses(draw_positions(ratios, deficits))
    for index, own in enumerate(figures):
        alone = measure_forced(draw_positions([ratios[index]], [deficits[index]]))
        for name in ("deficit_mean", "gap_mean", "kl_k1", "kl_k3"):
            whole = getattr(alone, name)
            assert getattr(own, name) == (None if whole is None else pytest.approx(whole.value)), name
        assert (own.n_compared, own.n_not_top, own.is_identical) == (
            alone.n_compared,
            alone.n_not_top,
            alone.is_identical,
        )
        assert (own.worst_at, own.worst_log_ratio) == (
            (None, None) if alone.worst is None else (alone.worst.position, alone.worst.log_ratio)
        )
    assert [own.is_identical for own in figures] == [False, False, True, False]


def test_exactly_nothing_is_a_fact_of_its_own() -> None:
    trace = make.trace(range(50), k=2)
    same = measure_forced(lay(*[(trace, trace)] * 6))
    assert same.is_identical
    assert same.kl_k3 == Estimate(value=0.0, low=0.0, high=0.0)
    nudged = np.nextafter(trace.logprobs, np.float32(-1), where=np.arange(50) == 20, out=trace.logprobs.copy())
    other = TokenTrace(trace.token_ids, nudged, trace.alternative_ids, trace.alternative_logprobs)
    assert not measure_forced(lay(*[(trace, trace)] * 5, (trace, other))).is_identical
    unknown = np.where(np.arange(50) == 20, np.float32(NAN), trace.logprobs)
    partly = TokenTrace(trace.token_ids, unknown, trace.alternative_ids, trace.alternative_logprobs)
    assert not measure_forced(lay((partly, trace))).is_identical


def test_nothing_has_no_figures() -> None:
    for positions in (lay(), lay((scored([], []), scored([], [])))):
        figures = measure_forced(positions)
        assert not figures.is_identical
        assert {figures.match_rate, figures.kl_k3, figures.gap_p99, figures.weight_ess, figures.worst} == {None}


def test_ratios_too_large_for_a_number_leave_the_others_known() -> None:
    figures = measure_forced(draw_positions([[0.0, 400.0] * 100] * 6))
    assert figures.weight_ess is None
    assert value(figures.kl_k1) == -200.0
    assert ForcedFigures.from_stored(figures.to_stored()) == figures


def test_the_worst_positions_stand_in_their_order() -> None:
    worst = list_worst(draw_positions([[0.1, -0.5], [NAN, 0.5, -0.7]]), 3)
    assert [(each.response, each.position) for each in worst] == [(1, 2), (0, 1), (1, 1)]


def test_positions_of_a_response_hang_together() -> None:
    """Ten responses that each agree throughout or nowhere say as little as ten positions."""
    rows = [[0.5] * 100 if index % 2 else [0.0] * 100 for index in range(10)]
    scattered = [[0.5, 0.0] * 50 for _ in range(10)]
    wide, narrow = (measure_forced(draw_positions(each)).beyond_clip for each in (rows, scattered))
    assert wide is not None
    assert wide.low is not None
    assert wide.high is not None
    assert (wide.low, wide.high) == (pytest.approx(0.2, abs=0.1), pytest.approx(0.8, abs=0.1))
    assert narrow is not None
    assert narrow.low is not None
    assert narrow.high is not None
    # As 1,000 positions that hang together in no way, but for what ten responses do not tell of that.
    n_alone = 1000 * (normal_quantile(0.975) / student_quantile(0.975, 9)) ** 2
    assert narrow.low == pytest.approx(beta_quantile(0.025, n_alone / 2, n_alone / 2 + 1))
    assert narrow.high == pytest.approx(1 - narrow.low)


def test_what_no_position_showed_may_still_be() -> None:
    figures = measure_forced(draw_positions([[0.0] * 100] * 10))
    n_alone = 1000 * (normal_quantile(0.975) / student_quantile(0.975, 9)) ** 2
    unseen = 1 - 0.025 ** (1 / n_alone)
    assert figures.match_rate is not None
    assert figures.beyond_clip is not None
    assert figures.match_rate.to_stored() == {"value": 1.0, "low": pytest.approx(1 - unseen), "high": 1.0}
    assert figures.beyond_clip.to_stored() == {"value": 0.0, "low": 0.0, "high": pytest.approx(unseen)}


@pytest.mark.parametrize(("n_responses", "share"), [(8, 0.97), (20, 0.97), (60, 0.97)])
def test_the_interval_of_a_share_covers_it(n_responses: int, share: float) -> None:
    """Responses that differ in their share, as Beta(20 · share, …) has them; percentiles covered 84, 87 and 93 %."""
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(300):
        counts = rng.integers(20, 80, n_responses)
        hits = rng.binomial(counts, rng.beta(20 * share, 20 * (1 - share), n_responses))
        estimate = Resampler(n_responses, 0).bound_share(hits.astype(np.float64), counts.astype(np.float64))
        assert estimate is not None
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= share <= estimate.high
    assert covered >= 0.91 * 300


def test_a_quantile_is_bounded_by_what_it_is_of_whole_responses_drawn_again() -> None:
    rng = np.random.default_rng(4)
    rows = [rng.normal(index, 0.2, 1 + index).tolist() for index in range(6)]
    positions = draw_positions(rows)
    again = np.random.default_rng(9).integers(0, 6, (N_DRAWS, 6)).tolist()
    drawn = [
        np.quantile(np.concatenate([rows[index] for index in chosen]), 0.5, method="inverted_cdf") for chosen in again
    ]
    estimate = Resampler(6, 9).bound_quantile(positions.log_ratios, positions.owners, 0.5)
    assert estimate is not None
    assert estimate.value == np.quantile(np.concatenate(rows), 0.5, method="inverted_cdf")
    assert (estimate.low, estimate.high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])))


def test_the_clip_range_is_of_the_ratio_and_not_of_its_logarithm() -> None:
    assert value(measure_forced(draw_positions([[0.19, 0.19, -0.21, 0.0]])).beyond_clip) == 0.5


def test_a_response_that_lacks_a_logprob_is_no_sequence() -> None:
    figures = measure_forced(draw_positions([[0.5, NAN], [-0.25, -0.25]]))
    assert value(figures.sequence_kl) == 0.5
    assert value(figures.sequence_ess) == 1.0


def test_few_responses_have_numbers_and_no_intervals() -> None:
    figures = measure_forced(draw_positions([[0.1, 0.2]] * 4))
    for estimate in (figures.kl_k1, figures.match_rate, figures.gap_p99, figures.weight_ess):
        assert estimate is not None
        assert estimate.low is estimate.high is None
    assert measure_forced(draw_positions([[0.1, 0.2], [0.3]] * 3)).kl_k1 != value(figures.kl_k1)


def test_responses_without_a_known_position_are_none_of_those_that_make_an_interval() -> None:
    figures = measure_forced(draw_positions([[0.01, 0.01]] * 4 + [[NAN, NAN]] * 20))
    for estimate in (figures.gap_mean, figures.kl_k3, figures.gap_p99, figures.beyond_clip, figures.weight_ess):
        assert estimate is not None
        assert estimate.low is estimate.high is None
    five = measure_forced(draw_positions([[0.01, 0.02]] * 5 + [[NAN, NAN]] * 20)).kl_k3
    assert five is not None
    assert five.low is not None


def test_a_seed_gives_the_same_bits_and_another_gives_others() -> None:
    rng = np.random.default_rng(1)
    positions = draw_positions([rng.normal(0, 0.1, 40).tolist() for _ in range(20)])
    assert measure_forced(positions) == measure_forced(positions)
    assert measure_forced(positions) != measure_forced(positions, random_seed=1)


def test_responses_that_are_drawn_in_parts_are_drawn_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    positions = draw_positions([rng.normal(0, 0.1, 7).tolist() for _ in range(12)])
    whole = measure_forced(positions)
    monkeypatch.setattr("evalboard.core.forced.resampling.CELLS", 100)
    for name, estimate in measure_forced(positions).to_stored().items():
        wanted = whole.to_stored()[name]
        assert estimate == (pytest.approx(wanted) if isinstance(wanted, dict) else wanted), name


def test_the_interval_of_a_kl_covers_the_truth_as_often_as_it_says() -> None:
    """Of 300 draws of 40 responses out of a known, skewed population: 95 in 100, less three standard errors."""
    rng = np.random.default_rng(3)
    scale = np.exp(rng.normal(0, 0.5, 400))
    everyone = [rng.normal(0, 0.03 * each, rng.integers(5, 65)) for each in scale]
    sums = np.array([(np.expm1(log_ratios) - log_ratios).sum() for log_ratios in everyone])
    counts = np.array([float(len(log_ratios)) for log_ratios in everyone])
    truth = sums.sum() / counts.sum()
    covered = 0
    for seed in range(300):
        chosen = rng.integers(0, 400, 40)
        kl = Resampler(40, seed).bound_mean(sums[chosen], counts[chosen], lowest=0.0)
        assert kl is not None
        assert kl.low is not None
        assert kl.high is not None
        covered += kl.low <= truth <= kl.high
    assert covered >= 300 * LEVEL - 3 * math.sqrt(300 * LEVEL * (1 - LEVEL))


def test_a_row_without_alternatives_is_not_ranked_beside_rows_that_have_some() -> None:
    sampled = scored([-1.0, -1.0], [None, None])
    forced = scored([-1.0, -1.0], [-0.5, None])
    assert forced.alternative_ids.tolist() == [[99], [NO_TOKEN]]
    assert measure_forced(lay((sampled, forced))).n_ranked == 1


def test_gaps_by_position_are_of_all_responses_and_of_stretches_of_one_width() -> None:
    short = draw_positions([[0.5, -1.0, np.nan], [-0.25, 3.0]], [[0.0] * 3, [0.0] * 2])
    assert measure_forced(short).by_position == (
        GapsOfStretch(first=0, last=0, n=2, median=0.375, highest=0.5),
        GapsOfStretch(first=1, last=1, n=2, median=2.0, highest=3.0),
    )
    ratios = [[0.0] * 250, [*[0.0] * 240, 2.0]]
    stretches = measure_forced(draw_positions(ratios, [[0.0] * len(row) for row in ratios])).by_position
    assert [(each.first, each.last) for each in stretches[:2]] == [(0, 2), (3, 5)]
    assert sum(each.n for each in stretches) == 491
    [odd] = [each for each in stretches if each.highest]
    assert (odd.first, odd.n, odd.highest, odd.median) == (240, 4, 2.0, 0.0)
    nothing = measure_forced(draw_positions([[np.nan]], [[0.0]]))
    assert nothing.by_position == ()
