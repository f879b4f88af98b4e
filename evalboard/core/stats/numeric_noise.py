"""Measure how far logits move with nothing changed: near ties and shifts are judged by it.

Everything is in nats and on the top-2 gap shift D (docs/divergence.md): the normaliser cancels in it, so it is the
shift of a logit difference. The noise of scores is another matter, `core.stats.noise`.
"""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

# Root mean square of D where a bucket's repeats measure none. A floor holds where it was measured: of float32 the
# batches of vLLM's CPU build move a hundred times less than what is reckoned with where the hardware is not known.
FLOORS = {"float32": 0.0005, "float32 on CPU": 4e-6, "float16": 0.01, "bfloat16": 0.09}
UNKNOWN_DTYPE = "bfloat16"  # the coarsest: what is not known must not make a shift look large
MAX_FLOORS = 3.0  # what repeats measure beyond that is another computation, and no noise to judge by
NEAR_SDS, NEAR_ULPS = 3.3, 2  # the movement of a numeric flip stays within these 99 times in 100
MIN_RATIO = 1.5
WITHIN = 0.995  # of a bucket's own pairs of repeats, the share that must not count as larger than noise
SEEN_TO = 0.85  # up to which their sizes show how uneven noise is: some of the rest may be of another computation
MAX_UNEVENNESS = 2.0  # where still more of them are
MIN_PAIRS = 50  # that differ, to measure the unevenness
MIN_POSITIONS = 3  # below, a root mean square says nothing
MIN_POSITIONS_FOR_ULP = 100
SHARE_ON_GRID = 0.95  # others are on a finer grid, where logits are small
_STEPS = tuple(2.0**-grid for grid in range(-1, 11))
_NORMAL = statistics.NormalDist()
_ROUNDING = 1e-5  # four float32 logprobs of up to −32 nats are rounded by less


@dataclass(frozen=True, slots=True)
class LogitNoise:
    """Logit noise. sd: root mean square of D in nats. ulp: the logits' step in nats, 0 if not known.

    dtype: the logits' dtype where the sd is assumed from it, empty where the sd was measured. An sd of 0 says that
    nothing moves unless something has changed: both sides are one steady bucket, whose repeats are the same to the bit.
    capped_from: what repeats measured, where that is more than MAX_FLOORS; else None. unevenness: by how much t(L) is
    raised where noise is larger in some answers than in others.
    """

    sd: float
    ulp: float = 0.0
    dtype: str = ""
    capped_from: float | None = None
    unevenness: float = 1.0

    @property
    def is_assumed(self) -> bool:
        return bool(self.dtype)

    @property
    def is_zero(self) -> bool:
        """Return whether there is no noise, so that any differing bit is a finding."""
        return self.sd == 0

    @property
    def near(self) -> float:
        """Return the largest movement at a flip that noise explains, in nats."""
        return 0.0 if self.is_zero else max(NEAR_ULPS * self.ulp, NEAR_SDS * self.sd)

    def ratio(self, shift_rms: float | None, n_usable: int) -> float | None:
        """Return R, the shift over the noise; None where too few positions are usable, or there is no noise."""
        return None if shift_rms is None or n_usable < MIN_POSITIONS or self.is_zero else shift_rms / self.sd

    def is_larger(self, shift_rms: float | None, n_usable: int) -> bool:
        """Tell whether the shift before the flip is larger than noise."""
        if self.is_zero:
            return bool(shift_rms)
        ratio = self.ratio(shift_rms, n_usable)
        return ratio is not None and ratio > self.threshold(n_usable)

    def threshold(self, n_usable: int) -> float:
        """Return what R must exceed after so many usable positions: t(L), raised where noise is uneven."""
        return self.unevenness * ratio_threshold(n_usable)


ZERO_NOISE = LogitNoise(0.0)


def ratio_threshold(n_usable: int) -> float:
    """Return t(L), what R must exceed after L usable positions."""
    return max(MIN_RATIO, 1 + 3 / math.sqrt(n_usable))


def name_logits(dtype: str | None, hardware: str | None) -> str | None:
    """Return the key of the logits' noise floor: their dtype, or "float32 on CPU" if that has its own."""
    named = f"{dtype} on {(hardware or '').upper()}"
    return named if named in FLOORS else dtype


def median_sd(shifts: Iterable[float | None]) -> float | None:
    """Return a bucket's noise: the median of the root mean squares of D, over pairs where D differs.

    A few outlying pairs do not move it. None if D differs in no pair.
    """
    moved = [shift for shift in shifts if shift]
    return statistics.median(moved) if moved else None


def measure_unevenness(pairs: Iterable[tuple[float | None, int]], sd: float | None) -> float:
    """Return the factor by which t(L) must rise to cover WITHIN of a bucket's own pairs.

    Their R over t(L) is taken to be log-normal, with its median and its quantile SEEN_TO.

    pairs: (root mean square of D, usable positions) of each pair of its repeats; sd: their `median_sd`. 1 where fewer
    than MIN_PAIRS differ.
    """
    known = [math.log(shift / ratio_threshold(n)) for shift, n in pairs if shift and n >= MIN_POSITIONS]
    if not sd or len(known) < MIN_PAIRS:
        return 1.0
    median, high = np.quantile(known, [0.5, SEEN_TO]).tolist()
    highest = median + (high - median) * _NORMAL.inv_cdf(WITHIN) / _NORMAL.inv_cdf(SEEN_TO)
    return min(max(math.exp(highest) / sd, 1.0), MAX_UNEVENNESS)


def choose_larger_noise(
    baseline: tuple[float | None, str | None],
    candidate: tuple[float | None, str | None],
    *,
    ulp: float = 0.0,
    unevenness: float = 1.0,
) -> LogitNoise:
    """Return the larger noise of two sides, each (measured sd or None, dtype or None).

    unevenness: the larger of theirs. A side whose sd is not measured, or is zero, has the floor of its dtype; a
    measured sd is capped at MAX_FLOORS of them.
    """
    larger = max((_side(*baseline, ulp), _side(*candidate, ulp)), key=lambda noise: noise.sd)
    return replace(larger, unevenness=unevenness)


def estimate_ulp(differences: NDArray[np.floating]) -> float:
    """Return the logits' step in nats from logit differences: a power of two, 0 if there is none.

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


def _side(sd: float | None, dtype: str | None, ulp: float) -> LogitNoise:
    known = dtype if dtype in FLOORS else UNKNOWN_DTYPE
    floor = FLOORS[known]
    if not sd:
        return LogitNoise(floor, ulp, known)
    most = MAX_FLOORS * floor
    return LogitNoise(most, ulp, capped_from=sd) if sd > most else LogitNoise(sd, ulp)
