"""Figures made of a run's columns and stored with them; they are not sent in this form."""

from evalboard.contract.base import Contract, Note
from evalboard.contract.bucket import Metric, Noise


class RepeatFigures(Contract):
    """One repeat within a bucket: its number of responses, and the points over their cases."""

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
    """The figures of a run: its buckets, and how many of its cases no repeat has scored."""

    buckets: tuple[BucketFigures, ...]
    n_cases_unscored: int


class BucketNoise(Contract):
    """The noise of one bucket of a suite version, in points.

    A run's standard deviation over `n_repeats`, and the change that the first checkpoint's repeats can detect.

    metrics: over samples of a case, from the same repeats; empty without sampling. split: the sources of the standard
    deviation, in words.
    """

    n_repeats: int
    noise_points: float
    resolution_points: float
    resolution_elsewhere_points: float
    metrics: tuple[Metric, ...]
    split: str
