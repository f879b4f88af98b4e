"""What served a run, bucket by bucket, and how much its score moves there with nothing changed."""

import math
from typing import Annotated, Any

from evalboard.contract.base import Contract, Count, Id, Note, Number, Points, Range, Share, page_only, says
from evalboard.contract.parts import BucketShare, RepeatScored

PLACED = ("range5_points", "interval", "reach", "level")


class Resolution(Contract):
    """The smallest change that so many repeats a side tell from noise, in points."""

    repeats: Count
    points: float
    elsewhere_points: Annotated[float, says(description="the same on other cases like these")]
    churn: Annotated[float, says(description="the share of cases that change their score there")]


class VarianceParts(Contract):
    """total² = sampler² + batch², as standard deviations in points; None where the two were not told apart."""

    total: float
    sampler: float | None
    batch: float | None


class VarianceSplit(VarianceParts):
    """What moves the score from run to run, as standard deviations in points; null where they were not told apart."""

    text: Annotated[str, says(description="the same in words, with what was not measured")]


class Noise(Contract):
    """How much a score moves with nothing changed, over the whole repeats of one bucket (docs/verdict.md).

    What takes two repeats is null with fewer, and all is null beside several buckets.
    """

    n_repeats: Count
    n_draws: Annotated[
        float | None,
        says(description="samples of a case, in harmonic mean; null where all repeats are samples"),
    ]
    does_first_differ: Annotated[
        bool, says(description="whether the later repeats are copies of each other and the first is none of them")
    ]
    disagreement_rate: float | None
    sd_points: float | None
    expected_range_points: Annotated[float | None, says(description="the range that flips within cases explain")]
    range5_points: Annotated[float | None, says(description="the range to expect of any 5 of the repeats")]
    n_unstable: Count | None
    n_likely_to_flip: Annotated[int | None, says(minimum=0, description="cases whose `flip_chance` is above 0.2")]
    interval: Annotated[Range | None, says(description="in points: where the score on these cases lies")]
    reach: Annotated[Range | None, says(description="in points: where it lies on other cases like these")]
    level: Annotated[float | None, says(description="of both intervals, 0.9")]
    overdispersion: Annotated[
        float | None, says(description="the chance of repeats that differ this much if runs do not move as a whole")
    ]
    is_overdispersed: bool
    texts_alike: Annotated[Share | None, says(description="the share of cases whose repeats all gave one text")]
    scores_alike: Annotated[Share | None, says(description="the share of cases whose repeats all have one score")]
    resolution: Resolution | None
    split: VarianceSplit | None

    @classmethod
    def partly_known(cls, **known: Any) -> "Noise":
        """Return a noise of which the other fields are unknown."""
        unknown = {**dict.fromkeys(cls.model_fields), "is_overdispersed": False, "does_first_differ": False}
        return cls(**{**unknown, "n_repeats": 0, **known})

    def without_place(self) -> "Noise":
        """Leave out where the score lies, which nobody is told of a run that is not finished."""
        return self.model_copy(update=dict.fromkeys(PLACED))


class Metric(Contract):
    """What several draws of a case come to, over all cases, in points (docs/verdict.md, Several draws)."""

    name: Annotated[str, says(description="avg@n, pass@k, pass^k or maj@n; n are the draws of a case")]
    points: Points
    interval: Annotated[Range | None, says(description="on these cases; null where nothing measures it")]
    no_interval: Annotated[str | None, says(description="why there is none, in words")]
    reach: Annotated[Range | None, says(description="on other cases like these")]
    level: Annotated[float, says(description="of both intervals, 0.9")]
    no_interval_code: str | None = page_only  # `no_interval` says it in words


class BucketRepeat(RepeatScored):
    n_responses: Count


class StrayResponse(Contract):
    case: str
    repeat: Number
    bucket: Annotated[Id, says(description="that served it")]
    place: int = page_only  # in lists: by bucket, case and repeat


class Strays(Contract):
    """Responses that lie far from the others of their case, which agree: another computation gave them.

    Cases with three repeats or more of the bucket in which anything differs are read: many of them when the run ends,
    and where these have strays the others by workers thereafter.
    """

    n_cases: Annotated[int, says(minimum=0, description="that were read")]
    n_unread: Annotated[Count | None, says(description="cases that differ and were not read, or are yet to be")]
    distance: Annotated[float, says(description="root mean square in nats, of these responses to the others")]
    noise: Annotated[float, says(description="the same, of the others of those cases among themselves")]
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
        """The mean in points over its responses, each of one weight: a bucket's parts of repeats are of unlike size.

        None where no repeat is scored.
        """
        scored = [line for line in self.repeats if line.score is not None]
        n_responses = sum(line.n_responses for line in scored)
        return math.fsum((line.score or 0.0) * line.n_responses for line in scored) / n_responses if scored else None
