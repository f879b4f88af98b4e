"""How noisy a suite's buckets are, measured from the newest repeats of each, and what five of them can tell apart."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import F
from numpy.typing import NDArray

from evalboard.core import columns, noise
from evalboard.core.policy import ALPHAS, LOOKS
from runs.models import RepeatScore
from runs.selectors.suite_history import BucketHistory, HistoryPoint

REPEATS = LOOKS[0][0]  # a side: the first look of a policy
REPEATS_READ = 20  # of each bucket, the newest; more would not move what is shown
CELLS_READ = 4_000_000  # scores that one page reads, 32 MB


@dataclass(frozen=True, slots=True)
class BucketNoise:
    """Of one bucket, in points: a run's standard deviation over `n_repeats`, and what REPEATS a side tell apart."""

    n_repeats: int
    noise_points: float
    resolution_points: float
    resolution_elsewhere_points: float


def bucket_noises(buckets: Sequence[BucketHistory], *, n_cases: int) -> dict[int, BucketNoise]:
    """By bucket id, those with two whole repeats; on a very large suite only the buckets with the newest runs."""
    wanted = _wanted(buckets, n_cases)
    found = {bucket_id: _measured(scores) for bucket_id, scores in _scores(wanted).items()}
    return {bucket_id: measured for bucket_id, measured in found.items() if measured is not None}


def _wanted(buckets: Sequence[BucketHistory], n_cases: int) -> dict[int, int]:
    """run → bucket: the newest whole runs of each bucket, as far as may be read."""
    left = CELLS_READ // n_cases
    wanted: dict[int, int] = {}
    for bucket in sorted(buckets, key=lambda bucket: max(point.run_id for point in bucket.points), reverse=True):
        n_repeats = min(REPEATS_READ, left)
        newest_first = sorted(bucket.points, key=lambda point: point.run_id, reverse=True)
        for point in _independent(newest_first):
            if point.range is None or point.status != "finished" or len(point.points) > n_repeats:
                continue
            wanted[point.run_id] = bucket.bucket_id
            n_repeats -= len(point.points)
            left -= len(point.points)
    return wanted


def _independent(points: Sequence[HistoryPoint]) -> Iterator[HistoryPoint]:
    """Those that were drawn like the first, each by a seed that none before it had; one that is one draw is left out.

    How far greedy repeats scatter and how far draws do are two things, and draws of one seed are the same draws.
    """
    seen: set[int] = set()
    for point in points:
        drawn = point.draws
        if drawn.temperature != points[0].draws.temperature or drawn.is_one:
            continue
        if drawn.is_sampled and drawn.seed is not None:
            if drawn.seed in seen:
                continue
            seen.add(drawn.seed)
        yield point


def _scores(wanted: dict[int, int]) -> dict[int, list[NDArray[np.float64]]]:
    """The repeats of the wanted runs by bucket, under the suite's own scorer."""
    found: dict[int, list[NDArray[np.float64]]] = defaultdict(list)
    own = RepeatScore.objects.filter(repeat__run__in=wanted, scorer=F("repeat__run__suite_version__scorer"))
    own = own.exclude(repeat__columns__n_left_out__gt=0)  # as the points are
    for run_id, packed in own.values_list("repeat__run", "scores"):
        found[wanted[run_id]].append(columns.unpack_scores(bytes(packed)))
    return found


def _measured(repeats: list[NDArray[np.float64]]) -> BucketNoise | None:
    scores = np.column_stack(repeats)
    sd = noise.sd_points(scores)
    here = noise.resolution_points(scores, repeats=REPEATS, alpha=ALPHAS[LOOKS[0]][0])
    elsewhere = noise.resolution_elsewhere_points(scores, repeats=REPEATS)
    if sd is None or here is None or elsewhere is None:
        return None
    return BucketNoise(len(repeats), sd, here, elsewhere)
