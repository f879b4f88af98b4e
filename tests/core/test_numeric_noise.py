"""The noise of logits is measured where repeats show it, assumed where they do not, and says which."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core import codec
from evalboard.core.divergence import find_divergence
from evalboard.core.numeric_noise import FLOORS, NumericNoise, estimate_ulp, noise_between, pooled_sd, threshold
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
        pytest.param((0.002, "float32"), (None, "bfloat16"), 0.09, "bfloat16", id="measured-on-one"),
        pytest.param((0.2, "float32"), (None, "bfloat16"), 0.2, "", id="measured-and-larger"),
    ],
)
def test_the_noisier_side_is_the_measure(
    baseline: tuple[float | None, str | None], candidate: tuple[float | None, str | None], sd: float, dtype: str
) -> None:
    noise = noise_between(baseline, candidate)
    assert (noise.sd, noise.dtype, noise.is_assumed) == (sd, dtype, bool(dtype))
    assert noise_between(candidate, baseline) == noise


@pytest.mark.parametrize(
    ("noise", "near"),
    [
        pytest.param(NumericNoise(0.1, 0.125), 0.33, id="by-the-sd"),
        pytest.param(NumericNoise(0.01, 0.125), 0.25, id="by-two-ulps"),
    ],
)
def test_near_is_two_ulps_or_a_multiple_of_the_sd(noise: NumericNoise, near: float) -> None:
    assert noise.near == pytest.approx(near)


@pytest.mark.parametrize(("n", "limit"), [(3, 1 + math.sqrt(3)), (9, 2.0), (36, 1.5), (1000, 1.5)])
def test_the_threshold_falls_with_the_positions(n: int, limit: float) -> None:
    assert threshold(n) == pytest.approx(limit)


def test_two_positions_say_nothing_of_a_shift() -> None:
    noise = NumericNoise(0.01)
    assert noise.ratio(5.0, 2) is None
    assert not noise.is_larger(5.0, 2)
    assert noise.is_larger(5.0, 3)
    assert noise.ratio(None, 0) is None


@given(st.lists(st.lists(st.floats(-2, 2), max_size=8), max_size=6))
def test_pooled_is_the_rms_over_all_positions(pairs: list[list[float]]) -> None:
    parts = [(len(shifts), math.sqrt(sum(d * d for d in shifts) / len(shifts)) if shifts else None) for shifts in pairs]
    together = [d for shifts in pairs for d in shifts]
    wanted = math.sqrt(sum(d * d for d in together) / len(together)) if together else None
    assert pooled_sd(parts) == pytest.approx(wanted)


def test_the_sd_of_a_simulated_bucket_is_that_of_its_logits() -> None:
    """Logits finer than their noise: D is the difference of four errors of 0.3 nats; bfloat16 adds its rounding."""
    found = [find_divergence(*pair) for pair in stacks.pairs(60, seed=3, noise=0.3)]
    sd = pooled_sd((pair.n_usable, pair.shift_rms) for pair in found)
    assert sd == pytest.approx(2 * 0.3, rel=0.05)


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
    sd = pooled_sd((pair.n_usable, pair.shift_rms) for pair in found)
    assert sd == pytest.approx(FLOORS["bfloat16"], abs=0.005)
