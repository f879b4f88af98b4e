"""Answers that another computation gave are found, and noise of whatever shape is not accused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench.simulated_shifts import FLOOR, SEED, Stack, tables
from evalboard.core.compare import ServedRepeats
from evalboard.core.stats import FAR_FLOORS, BucketStrays, assume_logit_sd, find_strays, list_strays

FAR = FAR_FLOORS * FLOOR


def table(off: float, near: float = 0.0, *, k: int = 5, stray: int = 2) -> np.ndarray:
    """Distances of k repeats that lie `near` each other, but for one that is `off`, in nats."""
    distances = np.full((k, k), near**2)
    distances[stray, :] = distances[:, stray] = off**2
    np.fill_diagonal(distances, 0)
    return distances


def test_one_repeat_that_lies_far_from_others_that_agree_is_a_stray() -> None:
    found = find_strays(np.array([table(0.33), table(0.4, stray=0), table(0.0), table(0.35)]), far=FAR)
    assert found is not None
    assert (found.n_cases, found.places, found.noise) == (4, ((0, 2), (1, 0), (3, 2)), 0.0)
    assert found.n_agreeing == 17
    assert found.distance == pytest.approx(np.sqrt((0.33**2 + 0.4**2 + 0.35**2) / 3))


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param([table(0.33), table(0.33), table(0.0)], id="two-are-too-few"),
        pytest.param([table(0.2)] * 9, id="within-what-noise-does"),
        pytest.param([table(0.4, near=0.2)] * 9, id="not-apart-from-the-others"),
        pytest.param([table(0.4)] * 4 + [np.full((5, 5), 0.3) - 0.3 * np.eye(5)] * 4, id="as-many-agree-on-nothing"),
        pytest.param([table(0.4)] * 4 + [table(0.2)] * 4, id="no-gap"),
        pytest.param([np.where(table(0.4) > 0, np.nan, 0.0)] * 5, id="parted-too-early"),
    ],
)
def test_what_may_be_noise_is_nothing(cases: list[np.ndarray]) -> None:
    assert find_strays(np.array(cases), far=FAR) is None


def test_where_repeats_must_be_the_same_one_bit_makes_a_stray() -> None:
    assert find_strays(np.array([table(1e-7)] * 3), far=0.0) == BucketStrays(
        3, ((0, 2), (1, 2), (2, 2)), pytest.approx(1e-7), 0.0, 12, 0.0
    )


def test_of_further_cases_even_a_single_stray_is_listed() -> None:
    cases = np.array([table(0.33), table(0.02), table(0.2)])
    assert find_strays(cases, far=FAR) is None
    assert list_strays(cases, far=FAR).places == ((0, 2),)
    assert list_strays(cases[1:], far=FAR) == BucketStrays(2, (), 0.0, 0.0, 10, FAR)
    assert list_strays(cases[:0], far=FAR) == BucketStrays(0, (), 0.0, 0.0, 0, FAR)


def test_a_repeat_that_is_not_there_is_neither_near_nor_far() -> None:
    cases = np.array([table(0.33), table(0.4), table(0.35)])
    cases[:, 4], cases[:, :, 4] = np.nan, np.nan
    found = find_strays(cases, far=FAR)
    assert found is not None
    assert (found.places, found.n_agreeing) == (((0, 2), (1, 2), (2, 2)), 9)


@pytest.mark.parametrize(
    "stack",
    [
        pytest.param(Stack(0.03), id="batched"),
        pytest.param(Stack(0.03, share=0.1), id="most-are-the-same-to-the-bit"),
        pytest.param(Stack(0.1, share=0.1), id="most-are-the-same-and-the-rest-are-coarse"),
        pytest.param(Stack(0.15), id="at-the-limit"),
        pytest.param(Stack(0.3), id="all-beyond-the-limit"),
        pytest.param(Stack(0.06, spread=1.0), id="some-cases-are-noisier"),
        pytest.param(Stack(0.03, unevenness=1.0), id="some-positions-are-noisier"),
        pytest.param(Stack(0.03, memory=0.9), id="it-stays-along-the-answer"),
    ],
)
@pytest.mark.parametrize("k", [3, 5])
def test_noise_is_not_accused(stack: Stack, k: int) -> None:
    rng = np.random.default_rng(SEED)
    assert [find_strays(tables(stack, k, rng), far=FAR) for _ in range(10)] == [None] * 10


@pytest.mark.parametrize("stack", [Stack(1e-5), Stack(1e-5, unevenness=1.0), Stack(1e-5, memory=0.9, spread=0.5)])
@pytest.mark.parametrize("k", [3, 5])
def test_quiet_noise_of_float32_is_not_accused(stack: Stack, k: int) -> None:
    rng = np.random.default_rng(SEED)
    quiet = replace(stack, dtype="float32")
    far = FAR_FLOORS * assume_logit_sd(quiet.dtype)
    assert [find_strays(tables(quiet, k, rng), far=far) for _ in range(20)] == [None] * 20


def test_where_repeats_measure_less_than_the_floor_a_build_within_it_is_found() -> None:
    rng = np.random.default_rng(SEED)
    served = tables(Stack(1e-5, dtype="float32"), 5, rng, routed=0.06, shift=2e-4, n_cases=200)
    far = FAR_FLOORS * assume_logit_sd("float32")
    found = find_strays(served, far=far)
    assert found is not None
    assert found.distance < far
    assert found.far == pytest.approx(6 * 2e-5, rel=0.3)
    assert 45 <= len(found.places) <= 75  # of 1,000 answers 60
    assert list_strays(served, far=found.far) == found


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_rounding_of_float32_is_not_accused(share: float) -> None:
    rng = np.random.default_rng(SEED)
    stack = Stack(1e-6, share=share, dtype="float32 on CPU")
    far = FAR_FLOORS * assume_logit_sd(stack.dtype)
    assert [find_strays(tables(stack, 5, rng), far=far) for _ in range(10)] == [None] * 10


@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_six_in_a_hundred_that_another_build_answered_are_found(noise: float) -> None:
    rng = np.random.default_rng(SEED)
    found = find_strays(tables(Stack(noise), 5, rng, routed=0.06, n_cases=200), far=FAR)
    assert found is not None
    assert found.distance == pytest.approx(0.33, abs=0.07)
    assert 40 <= len(found.places) <= 75  # of 1,000 answers 60


def test_of_two_repeats_that_differ_neither_is_searched() -> None:
    traces = np.zeros((3, 3, 2), np.uint64)
    traces[:, :, 0] = [[1, 2, 2], [1, 1, 2], [1, 1, 1]]
    is_ours = np.array([[True, True, True], [True, False, True], [True, True, True]])
    unread: dict[str, Any] = {"is_decimal": False, "logits": None, "find_places": None, "reader": None}
    repeats = ServedRepeats(traces=traces, is_ours=is_ours, is_steady=True, **unread)
    assert repeats.differs.tolist() == [True, True, False]
    assert repeats.telling.tolist() == [0]
