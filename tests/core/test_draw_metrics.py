"""avg@n, pass@k, pass^k and maj@n: against every choice of draws, by simulation, and at size."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from evalboard.core.scoring import MEAN, PASS_ALL, PASS_AT, MetricSpec, parse_metric
from evalboard.core.stats import draw_metrics

HAS_PASSED = {PASS_AT: any, PASS_ALL: all}


def numbered(*answers: str) -> np.ndarray:
    """One case whose draws gave these answers; "" is one that cannot be read."""
    return np.array([[sum(map(ord, answer)) for answer in answers]], np.uint64)


@pytest.mark.parametrize("kind", [PASS_AT, PASS_ALL])
def test_an_estimate_is_the_mean_over_every_choice_of_k_draws(kind: str) -> None:
    rng = np.random.default_rng(1)
    scores = (rng.random((40, 7)) < rng.random((40, 1))).astype(np.float64)
    for k in range(1, 8):
        every = [[HAS_PASSED[kind](chosen) for chosen in combinations(row, k)] for row in scores.tolist()]
        assert draw_metrics.estimate(scores, MetricSpec(kind, k)) == pytest.approx(np.mean(every, axis=1))


def test_no_number_of_draws_costs_a_digit() -> None:
    """1 − C(900, 500)/C(1000, 500) is 1 − 3.5e-35, and C(500, 400)/C(1000, 400) is about 1e-166."""
    scores = np.repeat([[1.0] * 100 + [0.0] * 900, [1.0] * 500 + [0.0] * 500], 1, axis=0)
    assert draw_metrics.estimate(scores, MetricSpec(PASS_AT, 500))[0] == 1.0
    tiny = draw_metrics.estimate(scores, MetricSpec(PASS_ALL, 400))[1]
    assert tiny == math.comb(500, 400) / math.comb(1000, 400) > 0


@pytest.mark.parametrize("metric", [MetricSpec(PASS_AT, 2), MetricSpec(PASS_ALL, 3), MetricSpec(PASS_AT, 4)])
def test_pseudo_values_average_to_the_estimate_and_scatter_as_leaving_a_draw_out_does(metric: MetricSpec) -> None:
    rng = np.random.default_rng(2)
    scores = rng.integers(0, 2, (60, 6)).astype(np.float64)
    scores[3, 2] = np.nan
    pseudo = draw_metrics.jackknife(scores, metric)
    assert np.nanmean(pseudo, axis=1) == pytest.approx(draw_metrics.estimate(scores, metric))
    for row, values in zip(scores, pseudo, strict=True):
        there = row[~np.isnan(row)]
        n = len(there)
        left = [draw_metrics.estimate(np.delete(there, r)[None], metric)[0] for r in range(n)]
        assert np.nanvar(values, ddof=1) / n == pytest.approx((n - 1) * np.var(left))
    assert np.isnan(pseudo[3, 2])
    assert draw_metrics.jackknife(scores, MEAN) is scores
    assert np.isnan(draw_metrics.jackknife(scores[:, :4], MetricSpec(PASS_AT, 4))).all()  # no draw to leave out


@pytest.mark.parametrize(
    ("answers", "scores", "is_right"),
    [
        (("4", "4", "5", "6", ""), (1, 1, 0, 0, 0), 1.0),
        (("4", "5", "5", "5", ""), (1, 0, 0, 0, 0), 0.0),
        (("4", "4", "5", "5", "6"), (1, 1, 0, 0, 0), 0.5),
        (("4", "5", "6", "", ""), (1, 0, 0, 0, 0), 1 / 3),
        (("", "", "", "", "4"), (0, 0, 0, 0, 1), 1.0),
        (("", "", "", "", ""), (0, 0, 0, 0, 0), 0.0),
        (("4", "5", "5", "4", "4"), (1, 0, 0, np.nan, np.nan), 0.0),
    ],
)
def test_most_draws_decide_a_tie_is_broken_by_chance_and_what_cannot_be_read_has_no_vote(
    answers: tuple[str, ...], scores: tuple[float, ...], is_right: float
) -> None:
    value = draw_metrics.majority(np.array([scores], np.float64), numbered(*answers))
    assert value == pytest.approx([is_right])


def test_every_metric_is_there_with_its_interval_as_far_as_draws_measure_one() -> None:
    rng = np.random.default_rng(3)
    chances = rng.beta(2, 1, 300)
    scores = (rng.random((300, 5)) < chances[:, None]).astype(np.float64)
    answers = np.where(scores == 1, 1, rng.integers(2, 5, scores.shape)).astype(np.uint64)
    metrics = draw_metrics.measure_metrics(scores, answers)
    by_name = {metric.name: metric for metric in metrics}
    assert tuple(by_name) == ("avg@5", "pass@2", "pass@5", "pass^2", "pass^5", "maj@5")
    assert by_name["pass^5"].points < by_name["pass^2"].points < by_name["avg@5"].points
    assert by_name["avg@5"].points < by_name["maj@5"].points < by_name["pass@5"].points
    for metric in metrics:
        assert metric.reach is not None
        assert metric.reach[0] < metric.points < metric.reach[1]
    assert {name: metric.no_interval_code for name, metric in by_name.items() if metric.interval is None} == {
        "pass@5": "every_draw",
        "pass^5": "every_draw",
        "maj@5": "vote",
    }
    assert all(metric.no_interval_code is None for metric in metrics if metric.interval is not None)
    assert draw_metrics.measure_metrics(scores, None) == metrics[:-1]


def test_graded_scores_have_a_mean_alone_and_one_draw_has_nothing() -> None:
    graded = np.array([[0.5, 1.0], [0.0, 0.25]])
    assert [metric.name for metric in draw_metrics.measure_metrics(graded, None)] == ["avg@2"]
    assert draw_metrics.measure_metrics(graded[:, :1], None) == ()


@pytest.mark.parametrize(("n_runs", "least"), [(80, 0.85), pytest.param(300, 0.87, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "metric", [MetricSpec(PASS_AT, 2), MetricSpec(PASS_ALL, 2), MetricSpec(PASS_AT, 5), MetricSpec(PASS_ALL, 5)]
)
def test_the_interval_on_these_cases_covers_what_ever_more_draws_would_come_to(
    metric: MetricSpec, n_runs: int, least: float
) -> None:
    """At 90 %, of 6 draws and 400 cases; never too narrow, and too wide where k is near n (docs/verdict.md)."""
    rng = np.random.default_rng(4)
    n_covered = 0
    for _ in range(n_runs):
        chances = np.where(rng.random(400) < 0.5, rng.beta(2, 1, 400), rng.random(400) < 0.7)
        scores = (rng.random((400, 6)) < chances[:, None]).astype(np.float64)
        true = 100 * np.mean(1 - (1 - chances) ** metric.k if metric.kind == PASS_AT else chances**metric.k)
        measured = draw_metrics.measure_metrics(scores, None)
        [interval] = [each.interval for each in measured if each.name == metric.name]
        assert interval is not None
        n_covered += interval[0] <= true <= interval[1]
    assert n_covered >= least * n_runs


def test_where_no_draw_can_be_left_out_the_interval_for_other_cases_covers_these_as_well() -> None:
    """At 90 %, of 5 draws and 400 cases whose wrong draws share three answers: wider than it need be."""
    rng = np.random.default_rng(5)
    chances = rng.beta(2, 1, 400)
    true = {"pass@5": 1 - (1 - chances) ** 5, "pass^5": chances**5, "maj@5": np.zeros(400)}
    every = np.array(list(product(range(4), repeat=5)))  # all ways in which five draws answer, 0 being right
    wins = draw_metrics.majority((every == 0).astype(np.float64), every.astype(np.uint64) + 1)
    weights = [np.where(every == 0, chance, (1 - chance) / 3).prod(axis=1) for chance in chances]
    true["maj@5"] = np.array(weights) @ wins
    covered = dict.fromkeys(true, 0)
    for _ in range(300):
        wrong = rng.integers(1, 4, (400, 5))
        answers = np.where(rng.random((400, 5)) < chances[:, None], 0, wrong)
        measured = draw_metrics.measure_metrics((answers == 0).astype(np.float64), answers.astype(np.uint64) + 1)
        reach = {each.name: each.reach for each in measured if each.interval is None}
        for name, values in true.items():
            low, high = reach[name] or (np.nan, np.nan)
            covered[name] += low <= 100 * values.mean() <= high
    assert min(covered.values()) >= 0.9 * 300


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("mean", MEAN),
        ("pass@3", MetricSpec(PASS_AT, 3)),
        ("pass^2", MetricSpec(PASS_ALL, 2)),
        ("pass@1", MEAN),
        ("pass@0", None),
        ("pass@", None),
        ("pass@03", None),
        ("maj@5", None),
        (3, None),
    ],
)
def test_a_metric_has_one_name(name: object, metric: MetricSpec | None) -> None:
    assert parse_metric(name) == metric
