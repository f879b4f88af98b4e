"""The noise of logits is measured where repeats show it, assumed where they do not, and says which."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.simulated_shifts import SEED, Stack, neighbours
from evalboard.core.compare.divergence import find_divergence
from evalboard.core.stats.numeric_noise import (
    FLOORS,
    MAX_FLOORS,
    MAX_UNEVENNESS,
    MIN_PAIRS,
    LogitNoise,
    choose_larger_noise,
    estimate_ulp,
    measure_unevenness,
    median_sd,
    name_logits,
    ratio_threshold,
)
from evalboard.core.trace import codec
from tests.core import stacks

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("baseline", "candidate", "sd", "dtype"),
    [
        pytest.param((None, "float32"), (None, "float32"), 0.0005, "float32", id="float32"),
        pytest.param((None, "float32"), (None, "bfloat16"), 0.09, "bfloat16", id="the-coarser-side"),
        pytest.param((0.0, "float16"), (0.0, "float16"), 0.01, "float16", id="pinned-repeats-measure-zero"),
        pytest.param((None, None), (None, "float32"), 0.09, "bfloat16", id="not-known-is-coarsest"),
        pytest.param((None, "fp8"), (None, "float32"), 0.09, "bfloat16", id="a-dtype-without-a-floor"),
        pytest.param((0.02, "bfloat16"), (0.03, "bfloat16"), 0.03, "", id="measured-on-both"),
        pytest.param((0.001, "float32"), (None, "bfloat16"), 0.09, "bfloat16", id="measured-on-one"),
        pytest.param((0.2, "bfloat16"), (None, "bfloat16"), 0.2, "", id="measured-and-larger"),
        pytest.param((0.4, "bfloat16"), (None, "float32"), 0.27, "", id="beyond-what-noise-does"),
    ],
)
def test_the_noisier_side_is_the_measure(
    baseline: tuple[float | None, str | None], candidate: tuple[float | None, str | None], sd: float, dtype: str
) -> None:
    noise = choose_larger_noise(baseline, candidate)
    assert noise.capped_from == (0.4 if sd == 0.27 else None)
    assert (noise.sd, noise.dtype, noise.is_assumed) == (sd, dtype, bool(dtype))
    assert choose_larger_noise(candidate, baseline) == noise


@pytest.mark.parametrize(
    ("noise", "near"),
    [
        pytest.param(LogitNoise(0.1, 0.125), 0.33, id="by-the-sd"),
        pytest.param(LogitNoise(0.01, 0.125), 0.25, id="by-two-ulps"),
    ],
)
def test_near_is_two_ulps_or_a_multiple_of_the_sd(noise: LogitNoise, near: float) -> None:
    assert noise.near == pytest.approx(near)


@pytest.mark.parametrize(("n", "limit"), [(3, 1 + math.sqrt(3)), (9, 2.0), (36, 1.5), (1000, 1.5)])
def test_the_threshold_falls_with_the_positions(n: int, limit: float) -> None:
    assert ratio_threshold(n) == pytest.approx(limit)


def test_two_positions_say_nothing_of_a_shift() -> None:
    noise = LogitNoise(0.01)
    assert noise.ratio(5.0, 2) is None
    assert not noise.is_larger(5.0, 2)
    assert noise.is_larger(5.0, 3)
    assert noise.ratio(None, 0) is None


def test_the_noise_is_the_median_of_the_pairs_that_differ() -> None:
    near = [0.02, 0.03, 0.04]
    assert median_sd([0.0, None, *near, 0.0]) == 0.03
    assert median_sd([*near, 0.03, 2.0]) == 0.03  # one far-off pair moves nothing
    assert median_sd([0.0, None]) is None


@pytest.mark.parametrize(
    ("dtype", "hardware", "name", "sd"),
    [
        pytest.param("float32", "cpu", "float32 on CPU", 4e-6, id="where-it-was-measured"),
        pytest.param("float32", "cuda", "float32", 0.0005, id="elsewhere"),
        pytest.param("float32", None, "float32", 0.0005, id="hardware-not-known"),
        pytest.param("bfloat16", "cpu", "bfloat16", 0.09, id="no-floor-of-its-own"),
        pytest.param(None, "cpu", None, 0.09, id="dtype-not-known"),
    ],
)
def test_a_floor_holds_where_it_was_measured(
    dtype: str | None, hardware: str | None, name: str | None, sd: float
) -> None:
    assert name_logits(dtype, hardware) == name
    assert choose_larger_noise((None, name), (None, name)).sd == sd


def test_the_sd_of_a_simulated_bucket_is_that_of_its_logits() -> None:
    """Logits finer than their noise: D is the difference of four errors of 0.3 nats; bfloat16 adds its rounding."""
    sd = median_sd(pair.shift_rms for pair in stacks.find_partings(stacks.pairs(60, seed=3, noise=0.3)))
    assert sd == pytest.approx(2 * 0.3, rel=0.05)


def test_simulated_answers_of_another_build_do_not_widen_what_counts_as_near() -> None:
    alone, routed = (
        neighbours(Stack(0.03), 5, np.random.default_rng(SEED), n_cases=1000, routed=share).measure_noise("bfloat16")
        for share in (0.0, 0.06)
    )
    assert routed.near == pytest.approx(alone.near, rel=0.05)


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_simulated_rounding_of_float32_is_no_larger_shift(share: float) -> None:
    """Most pairs are the same to the bit, or none is: the rest differ by a step or two of the logits."""
    stack = Stack(1e-6, share=share, dtype="float32 on CPU")
    pairs = neighbours(stack, 5, np.random.default_rng(SEED), n_cases=1000)
    noise = pairs.measure_noise(stack.dtype)
    assert noise.sd < MAX_FLOORS * FLOORS[stack.dtype]
    assert pairs.share_beyond(noise) < 0.01


@pytest.mark.parametrize("stack", [Stack(0.1, spread=0.5), Stack(0.03, unevenness=1.0)], ids=["by-case", "by-position"])
def test_noise_that_is_larger_in_some_answers_is_no_larger_shift(stack: Stack) -> None:
    pairs = neighbours(stack, 5, np.random.default_rng(SEED), n_cases=1000)
    noise = pairs.measure_noise(stack.dtype)
    assert noise.unevenness > 1
    assert pairs.share_beyond(noise) < 0.02 < pairs.share_beyond(replace(noise, unevenness=1.0))


def test_even_noise_hardly_moves_the_threshold_nor_do_answers_of_another_build() -> None:
    for routed in (0.0, 0.06):
        pairs = neighbours(Stack(0.03), 5, np.random.default_rng(SEED), n_cases=1000, routed=routed)
        assert pairs.measure_noise("bfloat16").unevenness < 1.15


def test_the_threshold_is_stretched_twofold_at_most_and_only_where_enough_pairs_say_so() -> None:
    uneven = [(shift, 36) for shift in np.exp(np.random.default_rng(2).normal(0, 3, 200))]
    sd = median_sd(shift for shift, _ in uneven)
    assert measure_unevenness(uneven, sd) == MAX_UNEVENNESS
    assert measure_unevenness(uneven[: MIN_PAIRS - 1], sd) == 1.0
    assert LogitNoise(0.1, unevenness=2.0).threshold(36) == 3.0


@pytest.mark.parametrize("step", [0.125, 0.0625, 0.015625])
def test_the_step_of_a_coarse_dtype_is_read_off_its_differences(step: float) -> None:
    rng = np.random.default_rng(2)
    logits = rng.integers(-40, 40, (400, 2)) * step
    logprobs = (logits - 20.0).astype(np.float32)
    assert estimate_ulp(logprobs[:, 0] - logprobs[:, 1]) == step


@pytest.mark.parametrize(
    "differences",
    [
        pytest.param(np.random.default_rng(2).normal(0, 0.1, 1000), id="continuous"),
        pytest.param(np.full(99, 0.125), id="too-few"),
        pytest.param(np.zeros(1000), id="no-difference"),
        pytest.param(np.full(1000, np.nan), id="none-known"),
        pytest.param(np.zeros(0), id="none"),
    ],
)
def test_no_step_is_made_up(differences: np.ndarray) -> None:
    assert estimate_ulp(differences) == 0.0


@pytest.mark.parametrize(("dtype", "step"), [("bfloat16", 0.0625), ("float32", 0.0)])
def test_the_step_of_recorded_traces(dtype: str, step: float) -> None:
    traces = codec.read_block((DATA / f"smollm2-{dtype}.evt").read_bytes())
    assert estimate_ulp(np.concatenate([trace.margins() for trace in traces])) == step


def test_recorded_float32_against_bfloat16_is_what_the_floor_was_taken_from() -> None:
    sides = [codec.read_block((DATA / f"smollm2-{dtype}.evt").read_bytes()) for dtype in ("float32", "bfloat16")]
    found = [find_divergence(one, other) for one, other in zip(*sides, strict=True)]
    sd = median_sd(pair.shift_rms for pair in found)
    assert sd == pytest.approx(FLOORS["bfloat16"], abs=0.005)
