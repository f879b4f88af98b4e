"""What repeats say of a run's noise, a row for each measure and a column for each bucket."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evalboard.contract.bucket import Bucket
from evalboard.core.stats import ASSUMED_CHURN, CONFIDENCE_LEVEL
from evalboard.wording.numbers import fixed
from frontend.templatetags.numbers import MISSING, NARROW, count, points, share, span


@dataclass(frozen=True, slots=True)
class NoiseRow:
    """`values` has one text a bucket."""

    name: str
    values: tuple[str, ...]
    meaning: str


@dataclass(frozen=True, slots=True)
class _Measure:
    name: str
    show: Callable[[Bucket], str]
    meaning: str


def rows(buckets: Sequence[Bucket]) -> tuple[NoiseRow, ...]:
    """Return the table's rows.

    What is known of no bucket has no row: one repeat has a range and a reach, and two have the rest.
    """
    lines = (
        NoiseRow(measure.name, tuple(measure.show(bucket) for bucket in buckets), measure.meaning)
        for measure in MEASURES
    )
    return tuple(row for row in lines if set(row.values) != {MISSING})


def _width(value: float | None) -> str:
    return MISSING if value is None else f"{points(value)}{NARROW}points"


def _unlikely(value: float | None) -> str:
    """Return the chance of repeats that differ as much: small enough to say so, or ordinary."""
    if value is None:
        return MISSING
    return f"p{NARROW}{'under 0.001' if value < 0.001 else fixed(value, 3)}"


MEASURES = (
    _Measure("Range", lambda bucket: span(bucket.range_so_far), "lowest to highest repeat"),
    _Measure(
        "On these cases",
        lambda bucket: span(bucket.noise_so_far.interval),
        f"measurement interval, {share(CONFIDENCE_LEVEL)}: where the score lies that ever more repeats would come to",
    ),
    _Measure(
        "On cases like these",
        lambda bucket: span(bucket.noise_so_far.reach),
        f"reach, {share(CONFIDENCE_LEVEL)}: no number of repeats makes it narrower, only more cases do",
    ),
    _Measure(
        "Noise floor",
        lambda bucket: _width(bucket.noise.sd_points),
        "standard deviation of one repeat’s score, from flips within cases",
    ),
    _Measure(
        "Range of 5 repeats",
        lambda bucket: _width(bucket.noise_so_far.range5_points),
        "what any 5 of these repeats span; where nothing is drawn, the policy strict decides nothing above its guard",
    ),
    _Measure(
        "Range to expect",
        lambda bucket: _width(bucket.noise.expected_range_points),
        "of 5 repeats, by the noise floor",
    ),
    _Measure(
        "Repeats disagree",
        lambda bucket: share(bucket.noise.disagreement_rate),
        "chance that two repeats of one case differ in score",
    ),
    _Measure(
        "Unstable cases",
        lambda bucket: count(bucket.noise.n_unstable),
        "seen with two scores; there may be more",
    ),
    _Measure(
        "Same text",
        lambda bucket: share(bucket.noise.texts_alike),
        "cases of which every repeat gave one text (TARr)",
    ),
    _Measure(
        "Same score",
        lambda bucket: share(bucket.noise.scores_alike),
        "cases of which every repeat gave one score (TARa)",
    ),
    _Measure(
        "Runs as a whole",
        lambda bucket: _unlikely(bucket.noise.overdispersion),
        "chance of repeats this far apart if only cases flip; under 0.005 look for routing, load or a changed backend",
    ),
    _Measure(
        "Resolves here",
        lambda bucket: _width(bucket.noise.resolution.points if bucket.noise.resolution else None),
        "smallest change on these cases that such repeats on both sides tell from noise, 4 times in 5",
    ),
    _Measure(
        "Resolves elsewhere",
        lambda bucket: _width(bucket.noise.resolution.elsewhere_points if bucket.noise.resolution else None),
        f"the same for other cases like these, where {share(ASSUMED_CHURN)} change their score",
    ),
    _Measure(
        "Likely to flip",
        lambda bucket: count(bucket.noise.n_likely_to_flip),
        "cases, predicted from the margins of the first repeat alone",
    ),
)
