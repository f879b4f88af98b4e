"""What a run's columns come to, as it is kept beside them: nothing of it is sent as it stands here."""

from evalboard.contract.base import Contract, Note
from evalboard.contract.bucket import Metric, Noise


class RepeatFigures(Contract):
    """One repeat within a bucket: how many of its responses the bucket gave, and the points over their cases."""

    index: int
    n_responses: int
    points: float | None


class BucketFigures(Contract):
    """One bucket's share of a run, over the repeats that have ended.

    is_alike: whether its whole repeats hold the same cases here, so that their points answer one question.
    """

    bucket: int
    repeats: tuple[RepeatFigures, ...]
    is_alike: bool
    noise: Noise
    metrics: tuple[Metric, ...] | None
    metrics_left_out: tuple[Note, ...] | None


class RunFigures(Contract):
    """Of a run: its buckets, and how many of its cases no repeat has scored."""

    buckets: tuple[BucketFigures, ...]
    n_cases_unscored: int


class BucketNoise(Contract):
    """Of one bucket of a suite version, in points: a run's standard deviation over `n_repeats`, and what the repeats of
    a first look tell apart.

    metrics: what draws of a case come to, over the same repeats; empty where nothing is drawn. split: what the standard
    deviation is made of, in words.
    """

    n_repeats: int
    noise_points: float
    resolution_points: float
    resolution_elsewhere_points: float
    metrics: tuple[Metric, ...]
    split: str
