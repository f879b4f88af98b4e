"""What served a run, bucket by bucket, and how much its score moves there with nothing changed."""

import math
from collections.abc import Iterable
from typing import Annotated, Any

from evalboard.contract.base import Contract, Count, Id, Note, Number, Points, Range, Share, page_only, says
from evalboard.contract.parts import BucketShare, RepeatScored

PLACED = ("range5_points", "interval", "reach", "level")


class Resolution(Contract):
    """The smallest change that so many repeats a side tell from noise, in points."""

    repeats: Count
    points: float
    elsewhere_points: Annotated[float, says(description="the same on new cases like these")]
    churn: Annotated[float, says(description="the share of new cases that change their score")]


class VarianceParts(Contract):
    """total² = sampler² + batch², as standard deviations in points; None if they cannot be separated."""

    total: float
    sampler: float | None
    batch: float | None


class VarianceSplit(VarianceParts):
    """Sources of a score's run-to-run variance, as standard deviations in points; null if not separable."""

    text: Annotated[str, says(description="the same in words, with what was not measured")]


class Noise(Contract):
    """How much a score varies if nothing changes, over the whole repeats of one bucket (docs/verdict.md).

    Values that need two repeats are null with fewer, and all are null for several buckets.
    """

    n_repeats: Count
    n_draws: Annotated[
        float | None,
        says(description="harmonic mean of samples per case; null if all repeats are samples"),
    ]
    does_first_differ: Annotated[
        bool, says(description="whether the later repeats are copies of each other, but not of the first")
    ]
    disagreement_rate: float | None
    sd_points: float | None
    expected_range_points: Annotated[float | None, says(description="the range explained by flips within cases")]
    range5_points: Annotated[float | None, says(description="the expected range of 5 repeats")]
    n_unstable: Count | None
    n_likely_to_flip: Annotated[int | None, says(minimum=0, description="cases whose `flip_chance` is above 0.2")]
    interval: Annotated[Range | None, says(description="interval of the score on these cases, in points")]
    reach: Annotated[Range | None, says(description="interval of the score on new cases like these, in points")]
    level: Annotated[float | None, says(description="of both intervals, 0.9")]
    overdispersion: Annotated[
        float | None, says(description="the chance of repeats differing this much if only single cases vary")
    ]
    is_overdispersed: bool
    texts_alike: Annotated[Share | None, says(description="the share of cases whose repeats all gave one text")]
    scores_alike: Annotated[Share | None, says(description="the share of cases whose repeats all have one score")]
    resolution: Resolution | None
    split: VarianceSplit | None

    @classmethod
    def partly_known(cls, **known: Any) -> "Noise":
        """Return a noise with the given fields; all others are unknown."""
        unknown = {**dict.fromkeys(cls.model_fields), "is_overdispersed": False, "does_first_differ": False}
        return cls(**{**unknown, "n_repeats": 0, **known})

    def without_place(self) -> "Noise":
        """Return a copy without the fields that reveal the score of an unfinished run."""
        return self.model_copy(update=dict.fromkeys(PLACED))


class Metric(Contract):
    """A metric over samples of a case, averaged over all cases, in points (docs/verdict.md)."""

    name: Annotated[str, says(description="avg@n, pass@k, pass^k or maj@n; n is the number of samples per case")]
    points: Points
    interval: Annotated[Range | None, says(description="on these cases; null if not measured")]
    no_interval: Annotated[str | None, says(description="why there is none")]
    reach: Annotated[Range | None, says(description="on other cases like these")]
    level: Annotated[float, says(description="of both intervals, 0.9")]
    no_interval_code: str | None = page_only  # `no_interval` says it in words


def weigh_scores(parts: Iterable[tuple[float | None, int]]) -> float | None:
    """Return the mean of scores, each of so many responses; None if one is not known, or without any."""
    known = list(parts)
    n_responses = sum(n for _, n in known)
    if not n_responses or any(score is None for score, _ in known):
        return None
    return math.fsum((score or 0.0) * n for score, n in known) / n_responses


class BucketRepeat(RepeatScored):
    n_responses: Count


class StrayResponse(Contract):
    case: str
    repeat: Number
    bucket: Annotated[Id, says(description="that served it")]
    place: int = page_only  # in lists: by bucket, case and repeat


class Strays(Contract):
    """Responses from another build: outliers within their case, while the others agree.

    Cases with three repeats or more of the bucket in which anything differs are read: many of them when the run ends,
    and where these have strays the others by workers thereafter.
    """

    n_cases: Annotated[int, says(minimum=0, description="cases that were read")]
    n_unread: Annotated[Count | None, says(description="differing cases not read, or not yet")]
    distance: Annotated[float, says(description="root mean square distance to the other responses, in nats")]
    noise: Annotated[float, says(description="the same among the other responses of those cases")]
    is_steady: Annotated[bool, says(description="whether repeats of the batch class must be the same to the bit")]
    n_strays: Annotated[Count, says(description="such responses")]
    n_stray_cases: Annotated[Count, says(description="cases that they answer")]
    responses: Annotated[
        tuple[StrayResponse, ...],
        says(description="the first 100 of them; `GET /runs/{id}/strays/` lists all"),
    ]
    n_responses: Annotated[
        Count | None,
        says(description="of the cases that were read and of as large a part of those in which nothing differs"),
    ]
    n_agreeing: Annotated[Count | None, says(description="of these, those that agree with most of their case")]
    n_identical: Annotated[
        Count | None, says(description="of these, those that agree to the bit with another of their case")
    ]


class Bucket(BucketShare):
    backend: Annotated[str, says(description="what the backend is called on the run's endpoint, for ever")]
    repeats: tuple[BucketRepeat, ...]
    model_reported: Annotated[str | None, says(description="as the answers name it; null where they do not")]
    range: Annotated[Range | None, says(description="lowest and highest; null where its repeats hold different cases")]
    noise: Noise
    metrics: Annotated[tuple[Metric, ...] | None, says(description="of a finished sampled run; null of any other")]
    metrics_left_out: Annotated[
        tuple[Note, ...] | None, says(description="metrics that these draws do not have, and why; null as `metrics`")
    ]
    strays: Annotated[Strays | None, says(description="null where there are none, or nobody has looked")]
    range_so_far: Range | None = page_only
    noise_so_far: Noise = page_only

    @property
    def score(self) -> float | None:
        """Return the mean score in points, weighted by responses; None if no repeat is scored.

        A bucket's parts of repeats differ in size, hence the weights.
        """
        return weigh_scores((line.score, line.n_responses) for line in self.repeats if line.score is not None)
