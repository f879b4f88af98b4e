"""Estimate how far noise may move the difference of two runs (docs/divergence.md).

Noise has no direction: if nothing changed, the expected difference is 0, and the estimate is how far from 0 noise is
likely to move it. Scores are float64[n_cases, k] as in `paired`, every case with a score on both sides.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalboard.core.stats import paired

NOISE_LEVEL = 0.95  # of the time noise alone moves the difference by no more

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DifferenceNoise:
    """How far noise may move a difference.

    up_to: points, 0 to 100, either way, at NOISE_LEVEL; None if noise was not measured. reason: why, else None.
    `left_out`: answers that are no samples count in the difference. `copies`: so do answers that are an earlier one
    again. `one_draw`: all repeats of each side are one sample. `one_repeat`: neither side has repeats.
    """

    up_to: float | None
    reason: str | None = None


def measure_noise_share(
    baseline: Scores, candidate: Scores, *, is_one_draw: tuple[bool, bool], share_seeds: bool = False
) -> DifferenceNoise:
    """Measure how far noise may move the difference.

    is_one_draw: for each side, whether its repeats are one sample of the noise, such as repeats that are the same to
    the bit. share_seeds: as in `paired.measure_noise`. A side with one sample or one repeat is given the other's noise,
    increased as for a verdict.
    """
    baseline, candidate = (
        _take_firsts(side) if is_one else side for side, is_one in zip((baseline, candidate), is_one_draw, strict=True)
    )
    measured = paired.measure_noise(baseline, candidate, share_seeds=share_seeds and not any(is_one_draw))
    ours, theirs = measured.flips_baseline, measured.flips_candidate
    if ours is None and theirs is None:
        return DifferenceNoise(None, "one_draw" if any(is_one_draw) else "one_repeat")
    # Where runs move as a whole, so does the one run whose repeats cannot show it.
    if ours is None and measured.runs_candidate is not None:
        measured = replace(measured, runs_baseline=paired.BORROWED * measured.runs_candidate)
    if theirs is None and measured.runs_baseline is not None:
        measured = replace(measured, runs_candidate=paired.BORROWED * measured.runs_baseline)
    half = paired.make_estimate(0.0, measured).half_width((1 - NOISE_LEVEL) / 2)
    return DifferenceNoise(min(half, 100.0))


def _take_firsts(scores: Scores) -> Scores:
    """Return float64[n, 1], the first score of each case; an earlier repeat may lack it."""
    firsts: Scores = np.take_along_axis(scores, np.argmin(np.isnan(scores), axis=1)[:, None], axis=1)
    return firsts


def find_beyond(difference: float, up_to: float) -> float:
    """Return the points of a difference that noise does not explain, with sign; 0 if it may explain all."""
    return float(np.copysign(max(abs(difference) - up_to, 0.0), difference))
