"""What moves a score between runs: the sampler and the batch, by simulation where both are known."""

import numpy as np
import pytest

from evalboard.contract.run import Draws
from evalboard.core.stats import sd_points, split_variance

DRAWN, GREEDY = Draws(0.7), Draws(0.0)


def test_the_parts_are_those_that_were_planted() -> None:
    """A seed is right with a chance of its own, q, and the batch decides by it: the mean of q(1 − q) is its part."""
    rng = np.random.default_rng(1)
    chances = rng.beta(2, 2, (2000, 1))
    by_seed = rng.beta(3 * chances + 0.01, 3 * (1 - chances) + 0.01, (2000, 20))
    ours, theirs = ((rng.random(by_seed.shape) < by_seed).astype(np.float64) for _ in range(2))
    split = split_variance(ours, DRAWN, is_steady=False, same_seeds=theirs)
    assert split is not None
    assert split.batch == pytest.approx(100 * np.sqrt((by_seed * (1 - by_seed)).mean() / 2000), rel=0.03)
    assert split.sampler == pytest.approx(100 * np.sqrt(by_seed.var(axis=1, ddof=1).mean() / 2000), rel=0.06)
    assert split.total == pytest.approx(np.hypot(split.sampler, split.batch))


def test_what_repeats_measure_depends_on_how_they_were_made() -> None:
    scores = np.random.default_rng(2).integers(0, 2, (40, 5)).astype(np.float64)
    total = sd_points(scores)
    parts = {
        (draws.is_sampled, is_steady): split_variance(scores, draws, is_steady=is_steady)
        for draws in (DRAWN, GREEDY)
        for is_steady in (True, False)
    }
    told = {key: (split.total, split.sampler, split.batch) for key, split in parts.items() if split is not None}
    assert told == {
        (True, True): (total, total, 0.0),
        (True, False): (total, None, None),
        (False, True): (total, 0.0, None),
        (False, False): (total, 0.0, total),
    }
    assert split_variance(scores[:, :1], DRAWN, is_steady=True) is None
    still = split_variance(scores[:, :1].repeat(3, axis=1), GREEDY, is_steady=True)
    assert still is not None
    assert (still.total, still.batch) == (0.0, 0.0)


@pytest.mark.parametrize("temperature", [0.0, 0.7, None])
def test_what_an_external_server_does_is_not_told_apart(temperature: float | None) -> None:
    scores = np.array([[1.0, 0, 1], [1, 1, 1]])
    split = split_variance(scores, Draws(temperature, is_external=True), is_steady=False)
    assert split is not None
    assert (split.total, split.sampler, split.batch) == (sd_points(scores), None, None)


@pytest.mark.parametrize("is_steady", [True, False])
def test_an_unknown_temperature_on_our_own_engine_may_sample(is_steady: bool) -> None:
    split = split_variance(np.array([[1.0, 0, 1], [1, 1, 1]]), Draws(None), is_steady=is_steady)
    assert split is not None
    assert (split.sampler, split.batch) == (None, None)


def test_draws_that_are_on_one_side_alone_say_nothing_of_the_batch() -> None:
    scores = np.array([[1.0, 0, 1], [1, 1, 1], [0, 1, 0], [0, 1, 1]])
    other = np.full(scores.shape, np.nan)
    other[:, 0] = [0, 1, 0, 0]
    split = split_variance(scores, DRAWN, is_steady=False, same_seeds=other)
    assert split is not None
    assert split.batch == pytest.approx(100 * np.sqrt(1 / 4 / 2 / 4))
    unknown = split_variance(scores, DRAWN, is_steady=False, same_seeds=np.full(scores.shape, np.nan))
    assert unknown is not None
    assert unknown.sampler is None
