"""Measure a judge as an instrument: noise, drift, and agreement with people's labels.

Scores are from 0 to 1, NaN where a judgement could not be read. No result depends on the order of answers or draws.
docs/suites.md ("How a judge is measured") has the rules with their simulated error rates.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.judge import Agreement, AnchorShift, CorrectedRate, JudgeNoise, JudgeVarianceSplit
from evalboard.core.stats import noise
from evalboard.core.stats.quantiles import beta_quantile, normal_quantile
from evalboard.core.stats.significance import N_DEALS, permutation_p_value

MOVED_ALPHA = 0.01  # a judge that did not move is called moved at most this often
SHIFT_POWER = 0.95  # the chance with which a shift of `detectable` points is found
PLANNED_SHIFT = 0.05  # that planned draws of 50 anchors find
MIN_ANCHOR_DRAWS, MAX_ANCHOR_DRAWS = 5, 40
RIGHT = 0.5  # a score or label from here counts as right
LEVEL = 0.95  # of the intervals of agreement and of the corrected rate
SPARE_DRAWS = 1.2  # times as many draws as the formula takes: the noise is an estimate, and an exact test is cautious
N_TABLES = 4000
SEED = 20261129
MIN_LABELS_EACH, MAX_STRATA = 20, 5  # of answers with graded scores

Scores = NDArray[np.float64]


def judge_noise(draws: Scores) -> JudgeNoise | None:
    """Measure how far a judge differs from itself on the same answers.

    draws: float64[n, r], one row an answer. None if no answer has two scores. The interval is Wilson's, of as many
    trials as there are answers: no mean of shares varies more than one of successes.
    """
    draws = draws[np.count_nonzero(~np.isnan(draws), axis=1) > 1]
    if not len(draws):
        return None
    differing = [_share_of_differing_pairs(row[~np.isnan(row)]) for row in draws]
    rate = math.fsum(differing) / len(draws)
    return JudgeNoise(
        n_answers=len(draws),
        n_draws=int(np.count_nonzero(~np.isnan(draws))),
        disagreement=rate,
        disagreement_interval=_wilson_interval(rate, len(draws)),
        variance=math.fsum(noise.within_case_variances(draws).tolist()) / len(draws),
    )


def judge_sd_points(measured: JudgeNoise, *, n_cases: int, draws: int = 1) -> float:
    """Return the standard deviation in points that judging adds to a run's score."""
    return 100 * math.sqrt(measured.variance / draws / n_cases)


def split_judge_variance(scores: Scores, measured: JudgeNoise, *, draws: int = 1) -> JudgeVarianceSplit | None:
    """Split the spread of a run's score over repeats into the model's and the judge's part.

    scores: float64[n_cases, k], each response judged on its own. draws: of how many judgements a score is the mean.
    None if no case has two scores. The judge's part is at most the whole: more is chance.
    """
    total = noise.sd_points(scores)
    if total is None:
        return None
    judge = min(judge_sd_points(measured, n_cases=len(scores), draws=draws), total)
    return JudgeVarianceSplit(total=total, model=math.sqrt(total**2 - judge**2), judge=judge)


def anchor_shift(before: Scores, after: Scores) -> AnchorShift | None:
    """Test whether a judge moved, by its draws of the same answers next to two runs.

    before: float64[n, r1], after: float64[n, r2], one row an anchor. Rows without a score on both sides are left out;
    None if none is left. If the judge did not move, an anchor's draws are exchangeable between the sides. So the test
    takes each anchor as a stratum. For scores of 0 and 1 it is exact (Cochran, Mantel and Haenszel's, by convolution),
    else by seeded permutation; both are two-sided.
    """
    is_on_both = ~(np.isnan(before).all(axis=1) | np.isnan(after).all(axis=1))
    before, after = before[is_on_both], after[is_on_both]
    if not len(before):
        return None
    moves = noise.average_cases(after) - noise.average_cases(before)
    shift = math.fsum(moves.tolist()) / len(moves)
    ours, theirs = (before, after) if shift >= 0 else (after, before)  # the same p, whichever side is the baseline
    is_pass_fail = noise.is_pass_fail(ours) and noise.is_pass_fail(theirs)
    p = _exact_p_value(ours, theirs) if is_pass_fail else _shuffled_p_value(ours, theirs, abs(shift) * len(moves))
    has_moved = p <= MOVED_ALPHA
    spread = _measure_spread(before, after)
    half = _bound_shift(spread if spread is not None else math.fsum((moves**2).tolist()) / len(moves), before, after)
    low, high = shift - half, shift + half
    if not has_moved:  # then 0 is within it, and else at most its end
        low, high = min(low, 0.0), max(high, 0.0)
    elif shift > 0:
        low = max(low, 0.0)
    else:
        high = min(high, 0.0)
    powered = normal_quantile(1 - MOVED_ALPHA / 2) + normal_quantile(SHIFT_POWER)
    return AnchorShift(
        n_anchors=len(moves),
        points=100 * shift,
        interval=(100 * max(low, -1.0), 100 * min(high, 1.0)),
        p=p,
        has_moved=has_moved,
        detectable=None if spread is None else min(100 * _bound_shift(spread, before, after, powered), 100.0),
    )


def plan_anchor_draws(measured: JudgeNoise | None, n_anchors: int) -> int:
    """Return how often to judge each anchor, so that a drift of 5 points is found 19 times in 20.

    From 5, also where nothing is measured, to 40: where 40 are too few, `AnchorShift.detectable` says what they find.
    """
    if measured is None or not n_anchors:
        return MIN_ANCHOR_DRAWS
    quantile = normal_quantile(1 - MOVED_ALPHA / 2) + normal_quantile(SHIFT_POWER)
    draws = quantile**2 * (2 * measured.variance + PLANNED_SHIFT) / (n_anchors * PLANNED_SHIFT**2)
    return min(max(math.ceil(SPARE_DRAWS * draws), MIN_ANCHOR_DRAWS), MAX_ANCHOR_DRAWS)


def agreement(judged: Scores, labels: Scores) -> Agreement:
    """Measure how far a judge and people's labels agree, over the answers that have both.

    judged, labels: float64[n]. The intervals of the rates are exact (Clopper and Pearson). That of kappa is the middle
    95 % of kappa over seeded tables from the posterior of the four cells under Jeffreys' prior, as the usual standard
    error is 0 where all agree.
    """
    has_both = ~(np.isnan(judged) | np.isnan(labels))
    is_judged_right, is_right = judged[has_both] >= RIGHT, labels[has_both] >= RIGHT
    n, n_right = len(is_right), int(is_right.sum())
    n_true, n_false = int((is_judged_right & is_right).sum()), int((is_judged_right & ~is_right).sum())
    cells = np.array([n_true, n_right - n_true, n_false, n - n_right - n_false], np.float64)
    kappa = float(_kappa(cells[None])[0]) if n else math.nan
    return Agreement(
        n_labels=n,
        kappa=None if math.isnan(kappa) else kappa,
        kappa_interval=None if math.isnan(kappa) else _kappa_interval(cells, kappa),
        true_positive=n_true / n_right if n_right else None,
        true_positive_interval=_exact_interval(n_true, n_right) if n_right else None,
        false_positive=n_false / (n - n_right) if n > n_right else None,
        false_positive_interval=_exact_interval(n_false, n - n_right) if n > n_right else None,
    )


def corrected_rate(judged: Scores, labels: Scores) -> CorrectedRate:
    """Estimate the pass rate that labels of all answers would give, from labels of some of them.

    judged: float64[n]; labels: float64[n], NaN where an answer has none. The labelled answers are a random sample.
    Prediction-powered, stratified by what the judge says (Fisch et al. 2024, "Stratified Prediction-Powered
    Inference"): each stratum's labels are weighted by its share of all answers. For a judge of 0 and 1 that is PPI++
    (Angelopoulos et al. 2023) at its best power. Graded scores are cut into equal strata, 20 labels each.

    The interval adds up those of the strata by the method of variance recovery (Newcombe 1998; Zou and Donner 2008): of
    each, the wider end of Wilson's and Jeffreys' (Brown, Cai and DasGupta 2001), as each alone is too narrow for some
    judges. A normal one has no width where a sample shows no error of the judge. Each is narrowed by the share of its
    stratum that has labels: where all answers have one, nothing is left to estimate.
    """
    is_judged = ~np.isnan(judged)
    judged, labels = judged[is_judged], labels[is_judged]
    is_labelled = ~np.isnan(labels)
    n, n_labels = len(judged), int(is_labelled.sum())
    raw = 100 * math.fsum(judged.tolist()) / n if n else 0.0
    if not n_labels:
        return CorrectedRate(n_answers=n, n_labels=0, raw=raw, corrected=None, interval=None)
    strata = _stratify(judged, n_labels)
    rates, lower, upper = [], [], []
    for stratum in np.unique(strata).tolist():
        is_in = strata == stratum
        n_in, own = int(is_in.sum()), labels[is_in & is_labelled].tolist()
        # Without a label nothing corrects the judge there, and anything is possible.
        rate = math.fsum(own or judged[is_in].tolist()) / (len(own) or n_in)
        low, high = _wider_interval(rate, len(own)) if own else (0.0, 1.0)
        share, left = n_in / n, math.sqrt(1 - len(own) / n_in)
        rates.append(share * rate)
        lower.append((share * left * (rate - low)) ** 2)
        upper.append((share * left * (high - rate)) ** 2)
    rate = math.fsum(rates)
    low, high = max(rate - math.sqrt(math.fsum(lower)), 0.0), min(rate + math.sqrt(math.fsum(upper)), 1.0)
    return CorrectedRate(
        n_answers=n, n_labels=n_labels, raw=raw, corrected=100 * rate, interval=(100 * low, 100 * high)
    )


def _exact_p_value(ours: Scores, theirs: Scores) -> float:
    """Return twice the smaller tail of the passes of one side, given each anchor's passes and draws.

    A stratum's passes on a side are then hypergeometric; their sum is the convolution, in an order of its own.
    """
    n_ours, n_theirs = (np.count_nonzero(~np.isnan(side), axis=1).tolist() for side in (ours, theirs))
    passed, passed_too = (np.nansum(side, axis=1).astype(np.int64).tolist() for side in (ours, theirs))
    chances, lowest = np.ones(1), 0
    for n, n_too, n_passed in sorted(
        (n, n_too, one + other) for n, n_too, one, other in zip(n_ours, n_theirs, passed, passed_too, strict=True)
    ):
        chances = np.convolve(chances, _chances_of_passes(n, n_too, n_passed))
        lowest += max(n_passed - n, 0)
    place = sum(passed_too) - lowest
    tails = math.fsum(chances[: place + 1].tolist()), math.fsum(chances[place:].tolist())
    return min(2 * min(tails), 1.0)


@cache
def _chances_of_passes(n: int, n_too: int, n_passed: int) -> Scores:
    """Return the chances of the least to the most passes among n_too draws, if n_passed of all draws pass."""
    ways = [
        math.comb(n_too, k) * math.comb(n, n_passed - k) for k in range(max(n_passed - n, 0), min(n_passed, n_too) + 1)
    ]
    return np.array(ways, np.float64) / math.comb(n + n_too, n_passed)


def _shuffled_p_value(ours: Scores, theirs: Scores, observed: float) -> float:
    """Return the chance of a sum of moves as far from 0 if each anchor's draws change sides.

    Anchors and their draws are put in order first, so that the seeded result depends on none.
    """
    strata = []
    for one, other in zip(ours, theirs, strict=True):
        own, others = one[~np.isnan(one)].tolist(), other[~np.isnan(other)].tolist()
        strata.append((sorted(own + others), len(own), len(others)))
    rng = np.random.default_rng(SEED)
    total = np.zeros(N_DEALS)
    for pool, n, n_too in sorted(strata):
        if pool[0] == pool[-1]:
            continue
        values, n_picked = np.array(pool), min(n, n_too)
        order = rng.random((N_DEALS, len(pool))).argpartition(n_picked - 1, axis=1)[:, :n_picked]
        picked = values[order].sum(axis=1)
        move = picked / n_picked - (math.fsum(pool) - picked) / (len(pool) - n_picked)
        total += move if n_picked == n_too else -move
    return permutation_p_value(observed, np.abs(total))


def _measure_spread(before: Scores, after: Scores) -> float | None:
    """Return the mean variance of an anchor's move; None if none has two draws on a side.

    A side of single draws is taken to be as noisy as the other.
    """
    rates = [noise.disagreement_rate(side) for side in (before, after)]
    known = [rate / 2 for rate in rates if rate is not None]
    if not known:
        return None
    variances = [known[0] if rate is None else rate / 2 for rate in rates] if len(known) == 1 else known
    parts = [variance * _one_by_draws(side) for variance, side in zip(variances, (before, after), strict=True)]
    return math.fsum(parts)


def _bound_shift(spread: float, before: Scores, after: Scores, quantile: float | None = None) -> float:
    """Return how far a shift can be from the measured one: the root x of n·x² = z² · (spread + x · h).

    h is the mean of 1 / draws. A shift of x brings a draw up to x of variance, which draws that all agree do not show.
    quantile: z; that of an interval at 99 % if left out.
    """
    z = normal_quantile(1 - MOVED_ALPHA / 2) if quantile is None else quantile
    n, per_draw = len(before), (_one_by_draws(before) + _one_by_draws(after)) / 2
    unseen = z * z * per_draw / n
    return (unseen + math.sqrt(unseen * unseen + 4 * z * z * spread / n)) / 2


def _one_by_draws(side: Scores) -> float:
    """Return the mean of 1 / draws over the anchors."""
    return math.fsum((1 / np.count_nonzero(~np.isnan(side), axis=1)).tolist()) / len(side)


def _share_of_differing_pairs(scores: Scores) -> float:
    counts: list[int] = np.unique(scores, return_counts=True)[1].tolist()
    return 1 - sum(count * (count - 1) for count in counts) / (len(scores) * (len(scores) - 1))


def _stratify(judged: Scores, n_labels: int) -> NDArray[np.int64]:
    """Return a stratum for each answer: its score if there are two, else of equally many answers."""
    values = np.unique(judged)
    if len(values) > 2:
        n = min(max(n_labels // MIN_LABELS_EACH, 2), MAX_STRATA)
        values = np.unique(np.quantile(judged, np.arange(1, n) / n, method="inverted_cdf"))
    return np.asarray(np.searchsorted(values, judged))


def _kappa(cells: Scores) -> Scores:
    """Return Cohen's kappa of each table, NaN where one word was used.

    cells: float64[n, 4], counts of both right, missed, falsely right, both wrong.
    """
    both, missed, false, neither = cells.T
    n = cells.sum(axis=1)
    by_chance = ((both + missed) * (both + false) + (neither + missed) * (neither + false)) / n**2
    is_one_word = by_chance >= 1
    kappa = ((both + neither) / n - by_chance) / np.where(is_one_word, 1.0, 1 - by_chance)
    return np.where(is_one_word, np.nan, kappa)


def _kappa_interval(cells: Scores, kappa: float) -> tuple[float, float]:
    drawn = _kappa(np.random.default_rng(SEED).standard_gamma(cells + 0.5, (N_TABLES, 4)))
    low, high = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return min(low, kappa), max(high, kappa)


def _exact_interval(n_right: int, n: int) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a share, from 0 to 1."""
    low = beta_quantile((1 - LEVEL) / 2, n_right, n - n_right + 1) if n_right else 0.0
    high = beta_quantile((1 + LEVEL) / 2, n_right + 1, n - n_right) if n_right < n else 1.0
    return low, high


def _wilson_interval(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's interval of a share of n, from 0 to 1."""
    z2 = normal_quantile((1 + LEVEL) / 2) ** 2
    middle, weight = share + z2 / (2 * n), 1 + z2 / n
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2)))
    return min(max((middle - half) / weight, 0.0), share), max(min((middle + half) / weight, 1.0), share)


def _wider_interval(share: float, n: int) -> tuple[float, float]:
    """Return the wider of Wilson's and Jeffreys' interval of a share of n at each end, from 0 to 1."""
    low, high = _wilson_interval(share, n)
    a, b = share * n + 0.5, (1 - share) * n + 0.5
    lower, higher = (beta_quantile(level, a, b) for level in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return min(low, lower), max(high, higher)
