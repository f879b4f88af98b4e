"""How much of the difference of two runs is noise, from the scores of their repeats (docs/divergence.md)."""

from dataclasses import asdict
from typing import Any

import numpy as np

from evalboard.core.compare import is_steady_batch
from evalboard.core.profile import have_same_seeds
from evalboard.core.stats import NoiseShare, is_left_out, measure_noise_share
from runs.compare.inputs import Inputs, Side
from runs.compare.outcomes import read_draws
from runs.store import Indexes


class ScoreNoise:
    """What noise alone does to the difference of two runs, and to the part of it that some cases make."""

    def __init__(self, inputs: Inputs) -> None:
        sides = (inputs.baseline, inputs.candidate)
        (ours, drawn), (theirs, drawn_too) = (read_draws(side) for side in sides)
        self._scores = (ours.scores, theirs.scores)
        self._are_one = tuple(
            draws.is_one or _is_one_draw(inputs, side, is_sampled=draws.is_sampled)
            for side, draws in zip(sides, (drawn, drawn_too), strict=True)
        )
        self._share_seeds = have_same_seeds(drawn, drawn_too)
        self._has_left_out = any((is_left_out(side.marks) & ~np.isnan(side.scores)).any() for side in sides)
        has_both = ~(np.isnan(ours.scores).all(axis=1) | np.isnan(theirs.scores).all(axis=1))
        self._cases: Indexes = np.flatnonzero(has_both)

    def share(self) -> NoiseShare:
        """Return how much of the whole difference is noise."""
        return self._measure(self._cases)

    def measure_cases(self, cases: Indexes) -> float | None:
        """Return how many points noise alone moves the difference by these cases, either way; None where not known.

        cases: int64, rows of the inputs with a score on both sides.
        """
        up_to = self._measure(cases).up_to
        return None if up_to is None else up_to * len(cases) / len(self._cases)

    def _measure(self, cases: Indexes) -> NoiseShare:
        if self._has_left_out:
            return NoiseShare(None, "left_out")
        ours, theirs = (scores[cases] for scores in self._scores)
        one, one_too = self._are_one
        return measure_noise_share(ours, theirs, is_one_draw=(one, one_too), share_seeds=self._share_seeds)


def find_noise_share(inputs: Inputs) -> dict[str, Any] | None:
    """Return the fields of NoiseShare, as a comparison's summary keeps them; None where there is no difference."""
    matched = inputs.matched
    if matched.is_mixed or not matched.is_scored or not matched.pairing.is_paired.any():
        return None
    return asdict(ScoreNoise(inputs).share())


def _is_one_draw(inputs: Inputs, side: Side, *, is_sampled: bool) -> bool:
    """Whether repeats cannot differ, being of a steady batch class, or do not: they are the same to the bit."""
    if len(side.key.repeats) < 2:
        return False
    batch_classes = [inputs.buckets[bucket].batch_class for bucket in side.bucket_ids]
    if not is_sampled and all(is_steady_batch(each, are_batches_equal=True) for each in batch_classes):
        return True
    is_there = side.is_there
    first = np.argmax(is_there, axis=1)[:, None, None]
    digests = np.concatenate([side.texts, side.traces], axis=2)
    is_same = (digests == np.take_along_axis(digests, first, axis=1)).all(axis=2)
    return bool((is_same | ~is_there).all())
