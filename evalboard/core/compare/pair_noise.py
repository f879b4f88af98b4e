"""The numeric noise by which a pair is judged: measured on the runs of the two buckets that answered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evalboard.core.compare.comparability import is_steady_batch
from evalboard.core.compare.divergence import Divergence, find_divergences
from evalboard.core.compare.known_pair import Place
from evalboard.core.compare.sides import Bools, Digests, Indexes, Traces
from evalboard.core.stats import (
    MIN_POSITIONS,
    ZERO_NOISE,
    LogitNoise,
    choose_larger_noise,
    estimate_ulp,
    measure_unevenness,
    median_sd,
)
from evalboard.core.trace import differ

NOISE_PAIRS = 200  # pairs of repeats of one bucket that are read to measure its noise
STEP_TRACES = 16  # traces of one bucket whose margins show the step of its logits

FindPlaces = Callable[[int, Sequence[int]], Mapping[int, Place]]


@dataclass(frozen=True, slots=True)
class Measured:
    """The noise of one bucket in a run.

    sd: in nats, None if no differing repeats measure it. logits: by name, None if not known. ulp: as in `estimate_ulp`.
    unevenness: as in `measure_unevenness`. is_moved: repeats gave the same tokens with other bits.
    """

    sd: float | None
    logits: str | None
    ulp: float
    unevenness: float = 1.0
    batch_class: str = ""
    is_moved: bool = False


UNKNOWN = Measured(None, None, 0.0)
ByBucket = Mapping[int | None, Measured]


class PairNoise:
    """The noise of two runs' pairs. are_batches_equal: as `is_steady_batch` has it."""

    def __init__(self, baseline: ByBucket, candidate: ByBucket, *, are_batches_equal: bool) -> None:
        self._baseline, self._candidate, self._are_batches_equal = baseline, candidate, are_batches_equal
        self._between: dict[tuple[int | None, int | None], LogitNoise] = {}

    def between(self, bucket: int | None, other: int | None) -> LogitNoise:
        """Return the noise between a bucket of the baseline and one of the candidate; None is not known.

        It is zero (`LogitNoise.is_zero`) within one bucket of a steady batch class, unless repeats show otherwise.
        """
        if (bucket, other) not in self._between:  # asked for each of thousands of pairs
            self._between[bucket, other] = self._find_between(bucket, other)
        return self._between[bucket, other]

    def _find_between(self, bucket: int | None, other: int | None) -> LogitNoise:
        ours, theirs = self._baseline.get(bucket, UNKNOWN), self._candidate.get(other, UNKNOWN)
        is_steady = is_steady_batch(ours.batch_class, are_batches_equal=self._are_batches_equal)
        if bucket == other and is_steady and not (ours.is_moved or theirs.is_moved):
            return ZERO_NOISE
        return choose_larger_noise(
            (ours.sd, ours.logits),
            (theirs.sd, theirs.logits),
            ulp=max(ours.ulp, theirs.ulp),
            unevenness=max(ours.unevenness, theirs.unevenness),
        )


@dataclass(frozen=True, slots=True, eq=False)
class EndedRepeats:
    """The ended repeats of one run, in order.

    traces: uint64[n, 2] of each, digests. served: int64[n] of each, the bucket that gave a sample. find_places: returns
    where the traces of a repeat, by its place, are stored for some cases, by case in order.
    """

    traces: Sequence[Digests]
    served: Sequence[Indexes]
    find_places: FindPlaces
    reader: Traces
    is_reported: bool

    def measure(self, bucket: int, *, logits: str | None, batch_class: str) -> Measured:
        """Return what the repeats show of one bucket."""
        is_served = [served == bucket for served in self.served]
        partings = self._part(is_served)
        sd = median_sd(parting.shift_rms for parting in partings if parting.n_usable >= MIN_POSITIONS)
        return Measured(
            sd=sd,
            logits=logits,
            ulp=self._ulp(is_served),
            unevenness=measure_unevenness(((each.shift_rms, each.n_usable) for each in partings), sd),
            batch_class=batch_class,
            is_moved=any(parting.drift_onset is not None for parting in partings),
        )

    def _part(self, is_served: Sequence[Bools]) -> list[Divergence]:
        """Return how neighbouring repeats part whose traces differ. is_served: bool[n], by repeat."""
        partings = []
        per_pair = max(NOISE_PAIRS // max(len(self.traces) - 1, 1), 1)
        for at in range(len(self.traces) - 1):
            differs = differ(self.traces[at], self.traces[at + 1])
            cases = np.flatnonzero(is_served[at] & is_served[at + 1] & differs)
            cases = cases[:: max(len(cases) // per_pair, 1)][:per_pair]
            ours, theirs = (self.find_places(repeat, cases.tolist()) for repeat in (at, at + 1))
            pairs = [(ours[case], theirs[case]) for case in ours if case in theirs]
            for sides in self.reader.read_pair_columns(pairs):
                partings += find_divergences(*sides, is_decimal=self.is_reported)
        return partings

    def _ulp(self, is_served: Sequence[Bools]) -> float:
        """Return the step of the bucket's logits, read off the first repeat that it served some of."""
        for repeat, by_this in enumerate(is_served):
            if by_this.any():
                places = self.find_places(repeat, np.flatnonzero(by_this)[:STEP_TRACES].tolist())
                margins = [trace.margins() for trace in self.reader.read(places.values())]
                return estimate_ulp(np.concatenate(margins)) if margins else 0.0
        return 0.0
