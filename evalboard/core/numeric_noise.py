"""How far logits move with nothing changed: the measure by which near ties and shifts are judged.

Everything is in nats and on the top-2 gap shift D (docs/divergence.md): the normaliser cancels in it, so it is the
shift of a logit difference. The noise of scores is another matter, `core.noise`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Root mean square of D where a bucket's repeats measure none: pinned repeats are bit-identical.
FLOORS = {"float32": 0.0005, "float16": 0.01, "bfloat16": 0.09}
UNKNOWN_DTYPE = "bfloat16"  # the coarsest: what is not known must not make a shift look large
NEAR_SDS, NEAR_ULPS = 3.3, 2  # the movement of a numeric flip stays within these 99 times in 100
LEAST_RATIO = 1.5
MIN_POSITIONS = 3  # below, a root mean square says nothing
MIN_POSITIONS_FOR_ULP = 100
SHARE_ON_GRID = 0.95  # the rest lies on a finer grid, where logits are small
_STEPS = tuple(2.0**-grid for grid in range(-1, 11))
_ROUNDING = 1e-5  # four float32 logprobs of up to −32 nats are rounded by less


@dataclass(frozen=True, slots=True)
class NumericNoise:
    """sd: root mean square of D in nats. ulp: the logits' step in nats, 0 where D looks continuous or is not known.

    dtype: the logits' dtype where the sd is assumed from it, empty where the sd was measured.
    """

    sd: float
    ulp: float = 0.0
    dtype: str = ""

    @property
    def is_assumed(self) -> bool:
        return bool(self.dtype)

    @property
    def near(self) -> float:
        """The largest movement at a flip that noise alone explains."""
        return max(NEAR_ULPS * self.ulp, NEAR_SDS * self.sd)

    def ratio(self, shift_rms: float | None, n_usable: int) -> float | None:
        """R, the shift over the noise; None where too few positions are usable."""
        return None if shift_rms is None or n_usable < MIN_POSITIONS else shift_rms / self.sd

    def is_larger(self, shift_rms: float | None, n_usable: int) -> bool:
        """Whether the shift before the flip is larger than noise."""
        found = self.ratio(shift_rms, n_usable)
        return found is not None and found > threshold(n_usable)


def threshold(n_usable: int) -> float:
    """t(L), what R must exceed after L usable positions."""
    return max(LEAST_RATIO, 1 + 3 / math.sqrt(n_usable))


def pooled_sd(parts: Iterable[tuple[int, float | None]]) -> float | None:
    """A bucket's noise: the root mean square of D over all shared positions of pairs of its repeats.

    Each part is one pair's (n_usable, shift_rms). None where no position is usable.
    """
    known = [(n, rms) for n, rms in parts if n and rms is not None]
    total = sum(n for n, _ in known)
    return math.sqrt(math.fsum(n * rms * rms for n, rms in known) / total) if total else None


def noise_between(
    baseline: tuple[float | None, str | None], candidate: tuple[float | None, str | None], *, ulp: float = 0.0
) -> NumericNoise:
    """The noise to judge two sides by: the larger of theirs. A side is (measured sd or None, logits dtype or None).

    A side whose sd is not measured, or is zero, takes the floor of its dtype.
    """
    return max((_side(*baseline, ulp), _side(*candidate, ulp)), key=lambda noise: noise.sd)


def estimate_ulp(differences: NDArray[np.floating]) -> float:
    """The logits' step in nats, read off differences of logits (D, or margins): a power of two, 0 where there is none.

    The coarsest step of which nearly all non-zero differences are multiples, given 100 positions or more.
    """
    sizes = np.abs(np.asarray(differences, dtype=np.float64))
    sizes = sizes[np.isfinite(sizes)]
    if len(sizes) < MIN_POSITIONS_FOR_ULP:
        return 0.0
    sizes = sizes[sizes > _ROUNDING]
    for step in _STEPS if len(sizes) else ():
        off_grid = np.abs(sizes - np.rint(sizes / step) * step)
        if np.mean(off_grid < _ROUNDING) >= SHARE_ON_GRID:
            return step
    return 0.0


def _side(sd: float | None, dtype: str | None, ulp: float) -> NumericNoise:
    if sd:
        return NumericNoise(sd, ulp)
    known = dtype if dtype in FLOORS else UNKNOWN_DTYPE
    return NumericNoise(FLOORS[known], ulp, known)
