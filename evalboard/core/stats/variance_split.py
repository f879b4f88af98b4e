"""Split a score's run-to-run variance into sampler and batch (docs/verdict.md).

All are standard deviations of one run's score in points, as noise.sd_points. Scores are as in noise.
"""

import math

import numpy as np

from evalboard.contract.bucket import VarianceParts
from evalboard.contract.run import Draws
from evalboard.core.stats import noise
from evalboard.core.stats.noise import Scores


def split_variance(
    scores: Scores, draws: Draws, *, is_steady: bool, same_seeds: Scores | None = None
) -> VarianceParts | None:
    """Split the spread of the repeats by source; None if no case has two scores.

    An external server may draw what it was asked to decode greedily, and says nothing of its batches, so that the parts
    are not known. Neither are they where the temperature is not. On our own engine: where nothing is drawn they scatter
    by the batch alone; draws that are decoded in a class that no neighbour disturbs (is_steady) by the sampler alone;
    others by both. Then same_seeds, the scores of the same draws in the same columns under another batch class, NaN
    where there is none, tells the batch's part. Where greedy repeats scatter though no neighbour disturbs them, it is
    neither: the batch's part is not known.
    """
    own = noise.sd_points(scores)
    if own is None:
        return None
    if draws.temperature is None or (draws.is_external and not is_steady):
        return VarianceParts(total=own, sampler=None, batch=None)
    if not draws.is_sampled:
        return VarianceParts(total=own, sampler=0.0, batch=None if is_steady and own else own)
    if is_steady:
        return VarianceParts(total=own, sampler=own, batch=0.0)
    batch = None if same_seeds is None else _batch_points(scores, same_seeds)
    if batch is None:
        return VarianceParts(total=own, sampler=None, batch=None)
    batch = min(batch, own)  # more than the whole is chance
    return VarianceParts(total=own, sampler=math.sqrt(own**2 - batch**2), batch=batch)


def _batch_points(scores: Scores, same_seeds: Scores) -> float | None:
    """Return the batch part, 100 · sqrt(Σ mean d² / 2) / n, from samples with the same seeds.

    d is a sample's score in one batch class minus that in the other. Each side has half of it: batch size 1 counts as
    one more batch. None if no sample is on both sides.
    """
    squares = (scores - same_seeds) ** 2
    known = ~np.isnan(squares).all(axis=1)
    if not known.any():
        return None
    mean = math.fsum(np.nanmean(squares[known], axis=1).tolist()) / int(known.sum())
    return 100 * math.sqrt(mean / (2 * len(scores)))
