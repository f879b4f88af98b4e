"""Measure and cache the noise of a suite version's buckets, from the newest repeats of each."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from django.db.models import F
from numpy.typing import NDArray

from evalboard.contract.figures import BucketNoise
from evalboard.contract.run import Draws
from evalboard.contract.suite import BucketHistory, HistoryRow
from evalboard.core.compare import is_steady_batch
from evalboard.core.digest import digest_json
from evalboard.core.stats import (
    measure_metrics,
    resolution_elsewhere_points,
    resolution_points,
    sd_points,
    split_variance,
)
from evalboard.core.suite import ALPHAS, LOOKS
from evalboard.core.trace import unpack_scores
from evalboard.wording.run import describe_split, explain_no_interval
from runs.models import RepeatScore, RunRecord, SuiteNoise
from runs.run import same_seeds_run

REPEATS = LOOKS[0][0]  # a side: the first look of a policy
REPEATS_READ = 20  # of each bucket, the newest; more would not move what is shown
CELLS_READ = 4_000_000  # scores that are read for one page, 32 MB
NOISE_RULES = 3  # more, whenever the same scores come to another noise
_SHAPE = digest_json(BucketNoise.model_json_schema())


class _Score(NamedTuple):
    """The scores of one repeat, without packed data."""

    id: int
    run: int
    repeat: int
    digest: str
    columns: str


def bucket_noises(buckets: Sequence[BucketHistory], *, version_id: int, n_cases: int) -> dict[int, BucketNoise]:
    """Return the noise of buckets with two whole repeats, by id, cached by the digest of the scores.

    For a very large suite, only of those with the newest runs.
    """
    wanted = _wanted(buckets, n_cases)
    drawn = {wanted[point.run_id]: point.draws for bucket in buckets for point in bucket.runs if point.run_id in wanted}
    batch_classes = {bucket.bucket_id: bucket.batch_class for bucket in buckets}
    scores = _scores(wanted)
    rows = {row.bucket_id: row for row in SuiteNoise.objects.filter(suite_version=version_id, bucket__in=scores)}
    noises: dict[int, BucketNoise | None] = {}
    for bucket_id, every in scores.items():
        own = _without_copies(every) if drawn[bucket_id].is_external and not drawn[bucket_id].is_sampled else every
        is_sampled = drawn[bucket_id].is_sampled
        is_steady = is_steady_batch(batch_classes[bucket_id], are_batches_equal=not drawn[bucket_id].may_sample)
        same_seeds = _same_seeds(own, bucket_id) if is_sampled and not is_steady else []
        digest = _digest([*own, *same_seeds], drawn[bucket_id], is_steady=is_steady)
        row = rows.get(bucket_id)
        if row is None or row.digest != digest:
            measured = _measured(own, same_seeds, drawn[bucket_id], is_steady=is_steady)
            noise = None if measured is None else measured.to_json()
            names = {"digest": digest, "noise": noise}
            row, _ = SuiteNoise.objects.update_or_create(
                suite_version_id=version_id, bucket_id=bucket_id, defaults=names
            )
        noises[bucket_id] = None if row.noise is None else BucketNoise.from_stored(row.noise)
    return {bucket_id: noise for bucket_id, noise in noises.items() if noise is not None}


def _wanted(buckets: Sequence[BucketHistory], n_cases: int) -> dict[int, int]:
    """Return run → bucket: the newest whole runs of each bucket, within the reading limit."""
    left = CELLS_READ // n_cases
    wanted: dict[int, int] = {}
    for bucket in sorted(buckets, key=lambda bucket: max(point.run_id for point in bucket.runs), reverse=True):
        n_repeats = min(REPEATS_READ, left)
        newest_first = sorted(bucket.runs, key=lambda point: point.run_id, reverse=True)
        for point in _independent(newest_first):
            if point.range is None or len(point.points) > n_repeats:
                continue
            wanted[point.run_id] = bucket.bucket_id
            n_repeats -= len(point.points)
            left -= len(point.points)
    return wanted


def _independent(points: Sequence[HistoryRow]) -> Iterator[HistoryRow]:
    """Yield points sampled like the first, each with a new seed, without those that are one sample.

    Greedy and sampled repeats have different noise, and samples of one seed are the same samples.
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


def _scores(wanted: Mapping[int, int]) -> dict[int, list[_Score]]:
    """Return the runs' scores by bucket, by the suite's own scorer, newest run first."""
    by_bucket: dict[int, list[_Score]] = defaultdict(list)
    own = RepeatScore.objects.filter(repeat__run__in=wanted, scorer=F("repeat__run__suite_version__scorer"))
    own = own.filter(repeat__cases=None).exclude(repeat__columns__n_left_out__gt=0)  # as the points are
    newest_first = own.order_by("-repeat__run_id", "repeat__index")
    for known in newest_first.values_list("pk", "repeat__run_id", "repeat__index", "digest", "repeat__columns__digest"):
        score = _Score(*known)
        by_bucket[wanted[score.run]].append(score)
    return by_bucket


def _without_copies(scores: Sequence[_Score]) -> list[_Score]:
    """Leave out the repeats of a run that gave every answer of an earlier one again, to the bit."""
    first = {(score.run, score.columns): score for score in reversed(scores)}
    return [score for score in scores if first[score.run, score.columns] is score]


def _same_seeds(own: Sequence[_Score], bucket_id: int) -> list[_Score]:
    """The scores of the run that drew by the seeds of the bucket's newest one under another batch class."""
    newest = RunRecord.objects.select_related("profile", "suite_version").get(pk=own[0].run)
    other = same_seeds_run(newest, [bucket_id])
    return [] if other is None else _scores({other.pk: bucket_id}).get(bucket_id, [])


def _digest(scores: Sequence[_Score], drawn: Draws, *, is_steady: bool) -> str:
    """Return the digest of all inputs of a bucket's noise."""
    known = [score.digest for score in scores]
    return digest_json([NOISE_RULES, _SHAPE, known, drawn.temperature, drawn.is_external, is_steady])


def _read(scores: Sequence[_Score]) -> dict[tuple[int, int], NDArray[np.float64]]:
    """(run, repeat index) → float64[n_cases], in the order that is given."""
    packed = dict(RepeatScore.objects.filter(pk__in=[score.id for score in scores]).values_list("pk", "scores"))
    return {(score.run, score.repeat): unpack_scores(bytes(packed[score.id])) for score in scores if score.id in packed}


def _measured(
    own: Sequence[_Score], same_seeds: Sequence[_Score], drawn: Draws, *, is_steady: bool
) -> BucketNoise | None:
    """own: of the newest run first; same_seeds: of another run, by the seeds of the newest of these."""
    repeats = _read(own)
    scores = np.column_stack(list(repeats.values()))
    sd = sd_points(scores)
    here = resolution_points(scores, repeats=REPEATS, alpha=ALPHAS[LOOKS[0]][0])
    elsewhere = resolution_elsewhere_points(scores, repeats=REPEATS)
    if sd is None or here is None or elsewhere is None:
        return None
    metrics = measure_metrics(scores, None) if drawn.is_sampled else ()
    others = {(own[0].run, index): each for (_, index), each in _read(same_seeds).items()}
    unknown = np.full(len(scores), np.nan)
    beside = np.column_stack([others.get(key, unknown) for key in repeats]) if others else None
    split = split_variance(scores, drawn, is_steady=is_steady, same_seeds=beside)
    words = ""
    if split is not None and split.total:
        words = describe_split(split, n_buckets=1, is_external=drawn.is_external)
    return BucketNoise(
        n_repeats=len(repeats),
        noise_points=sd,
        resolution_points=here,
        resolution_elsewhere_points=elsewhere,
        metrics=tuple(map(explain_no_interval, metrics)),
        split=words,
    )
